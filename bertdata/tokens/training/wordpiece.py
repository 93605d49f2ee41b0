"""WordPiece tokens learned from text, by the tokenizers library."""

from collections.abc import Iterator

from bertdata.config.dialects import find_dialect
from bertdata.errors import SettingsError
from bertdata.tokens.basic import split_words
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import SpecialTokens, check_size, lay_out
from bertdata.tokens.training.texts import TrainingText


def train_vocabulary(
    text: TrainingText, *, size: int, lower_case: bool, special: SpecialTokens | None = None
) -> list[str]:
    """At most ``size`` tokens, special ones first, by id. special: by default BERT's five.

    The text is split by this project's own tokeniser, so that the vocabulary fits it; the library
    sees one word at a time. One thread, for the same result every time.
    """
    check_size(size)
    special = special or lay_out("wordpiece")
    if size <= special.number:
        raise SettingsError(f"size is {size}, expected more than the {special.number} special tokens")
    tokenizers = import_tokenizers()
    words = _word_counts(text, lower_case)
    if not words:
        raise text.no_words()
    # The library numbers ## pieces in the order of a hash table that is new in every process, and
    # breaks ties by number. Naming them beforehand, sorted, leaves nothing to chance.
    continuations = sorted({f"##{character}" for word in words for character in word[1:]})
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=special.roles["unk"]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*special.first, *continuations],
        min_frequency=2,
        show_progress=False,
        initial_alphabet=[],
    )
    tokenizer.train_from_iterator(_repeated(words), trainer)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    if len(vocabulary) > size:
        raise SettingsError(
            f"size is {size}, but the text has {len(vocabulary)} single characters and pieces"
        )
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _word_counts(text: TrainingText, lower_case: bool) -> dict[str, int]:
    dialect = find_dialect("google")
    counts: dict[str, int] = {}
    for line in text.lines():
        for word in split_words(line, dialect, lower_case):
            counts[word] = counts.get(word, 0) + 1
    return counts


def _repeated(counts: dict[str, int]) -> Iterator[str]:
    """Each word as often as it occurs, in an order that depends on nothing else."""
    for word in sorted(counts):
        for _ in range(counts[word]):
            yield word
