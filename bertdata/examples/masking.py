"""Which positions of an example are masked, and what stands there instead; twin of _native/examples.h."""

from bertdata.config.recipes import ExampleSettings
from bertdata.examples.random_stream import RandomStream
from bertdata.records import Example, Vocabulary


def mask(
    pair: tuple[list[int], list[int], int],
    vocabulary: Vocabulary,
    continues_word: bytes,
    settings: ExampleSettings,
    stream: RandomStream,
) -> Example:
    """The example ``[CLS] a [SEP] b [SEP]`` with its masks drawn.

    Candidates (positions, or whole words) are shuffled and taken until enough positions are masked.
    A taken position becomes [MASK] with probability 0.8, stays as it is with 0.1, becomes a random
    token of the vocabulary with 0.1; its label is the original id.
    """
    a, b, next_label = pair
    original = [vocabulary.cls, *a, vocabulary.sep, *b, vocabulary.sep]
    candidates = _candidates(original, vocabulary, continues_word, settings.whole_word_mask)
    stream.shuffle(candidates)
    wanted = masks_wanted(len(original), settings)
    masked: dict[int, int] = {}
    for word in candidates:
        if len(masked) >= wanted:
            break
        if len(masked) + len(word) > wanted:
            continue
        for position in word:
            masked[position] = _replacement(original[position], vocabulary, stream)
    positions = sorted(masked)
    ids = list(original)
    for position in positions:
        ids[position] = masked[position]
    return Example(
        ids=ids,
        first_length=len(a) + 2,
        positions=positions,
        labels=[original[position] for position in positions],
        next_label=next_label,
    )


def masks_wanted(length: int, settings: ExampleSettings) -> int:
    """How many positions of an example of that many ids to mask."""
    share = round(length * settings.masked_lm_prob)
    wanted = min(settings.max_predictions_per_seq, max(1, share))
    if settings.rules.fills_predictions:
        wanted = max(wanted, length - settings.max_seq_length + settings.max_predictions_per_seq)
    return wanted


def _candidates(
    ids: list[int], vocabulary: Vocabulary, continues_word: bytes, whole_words: bool
) -> list[list[int]]:
    """Groups of positions that are masked together; [CLS] and [SEP] belong to none.

    With whole words, a piece that continues a word joins the candidate before it, if there is one.
    """
    candidates: list[list[int]] = []
    for position, token in enumerate(ids):
        if token in (vocabulary.cls, vocabulary.sep):
            continue
        if whole_words and candidates and continues_word[token]:
            candidates[-1].append(position)
        else:
            candidates.append([position])
    return candidates


def _replacement(original: int, vocabulary: Vocabulary, stream: RandomStream) -> int:
    if stream.random() < 0.8:
        return vocabulary.mask
    if stream.random() < 0.5:
        return original
    return vocabulary.replacements[stream.below(len(vocabulary.replacements))]
