"""Learns Unigram pieces from text with sentencepiece, the original program (Kudo 2018).

The tokenizers library has its own trainer. It adds up probabilities in the order of a hash table that differs
between processes, so its scores differ from run to run.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bertdata.errors import InputError, SettingsError
from bertdata.tokens.training.library import import_sentencepiece, import_tokenizers
from bertdata.tokens.training.special_tokens import SpecialTokens
from bertdata.tokens.training.texts import OnRead, VocabularyText
from bertdata.tokens.training.word_counts import OnCounted, count_words, sample_words
from bertdata.tokens.training.wordpiece import split_at_blanks

Piece = tuple[str, float]
"""A piece and the logarithm of its probability."""

SPACE = "▁"
"""Mark of a blank at the beginning of a word, U+2581."""

MOST_CHARACTERS = 1 << 24
"""Largest number of characters that sentencepiece learns from. Every occurrence of a word counts.

From 0.2.2 on sentencepiece keeps every occurrence in memory, with about 20 bytes per character. For a longer
text it gets a sample.
"""

LONGEST_WORD = 1 << 12
"""Longest word in characters. A longer run without white space is cut into words of this length.

Scripts without blanks have such runs. sentencepiece's time grows with the square of the length of a run that
repeats itself.
"""

_MOST_BYTES = 1 << 30
"""The largest value that sentencepiece accepts for the length of a word."""

_OF_SENTENCEPIECE = "\0\x1f▅"
"""Characters that sentencepiece reserves (U+001F from 0.2.2 on). It ignores words that contain them."""


def train_unigram(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    on_read: OnRead,
    on_counted: OnCounted,
) -> Any:
    """Learn a Unigram tokeniser. In the returned tokeniser, special tokens are not marked as special yet."""
    tokenizers = import_tokenizers()
    if size <= special.number:
        raise SettingsError(f"size is {size}, expected more than the {special.number} special tokens")
    rules = tokenizers.normalizers
    normalizer = rules.Sequence(
        [
            rules.NFKC(),
            *([rules.Lowercase()] if lower_case else []),
            rules.Replace(tokenizers.Regex(r"\s+"), " "),
            rules.Strip(),
        ]
    )

    def split(unit: str) -> Iterable[str]:
        for word in normalizer.normalize_str(unit).split(" "):
            for start in range(0, len(word), LONGEST_WORD):
                yield word[start : start + LONGEST_WORD]

    words = count_words(text.slices(on_read), split_at_blanks, split, special=special.all)
    if not words.counts:
        raise text.no_words()
    words = sample_words(words, MOST_CHARACTERS)
    on_counted(words)
    learned = train_pieces(words.counts, size=size - special.number, special=special.all)
    unknown = special.first.index(special.roles["unk"])
    pieces = [*((token, 0.0) for token in special.first), *learned]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(replacement=SPACE)
    tokenizer.decoder = tokenizers.decoders.Metaspace(replacement=SPACE)
    return tokenizer


def train_pieces(words: Mapping[str, int], *, size: int, special: Iterable[str]) -> list[Piece]:
    """Learn at most ``size`` pieces, the most probable first.

    Every character of the words is a piece.
    words: count of each word. Words contain no blanks. special: tokens that must not be pieces.
    """
    sentencepiece = import_sentencepiece()
    characters = {SPACE}.union(*words)
    if size < len(characters):
        raise SettingsError(
            f"size leaves {size} tokens beside the special ones, but the text has {len(characters)} single "
            "characters"
        )
    # Replace reserved characters by unused ones for the training, and put them back into the pieces.
    stands_for = _choose_stand_ins(characters)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_format_rows(words, str.maketrans(stands_for)),
            model_writer=model,
            input_format="tsv",
            max_sentence_length=_MOST_BYTES,
            vocab_size=size + 1,  # sentencepiece adds an unknown token
            hard_vocab_limit=False,
            character_coverage=1.0,
            normalization_rule_name="identity",
            bos_id=-1,
            eos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(
            f"sentencepiece learns nothing from this text: {' '.join(str(error).split())}"
        ) from None
    learned = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    back = str.maketrans({stand_in: character for character, stand_in in stands_for.items()})
    pieces = (
        (learned.id_to_piece(i).translate(back), learned.get_score(i))
        for i in range(1, learned.get_piece_size())
    )
    taken = set(special)
    found = [piece for piece in pieces if piece[0] not in taken]
    if missing := characters - taken - {text for text, _ in found}:
        points = ", ".join(f"U+{ord(character):04X}" for character in sorted(missing))
        raise InputError(
            f"sentencepiece {sentencepiece.__version__} learns no piece for the characters {points}, which "
            "would become the unknown token; leave them out of the text, or learn with another release"
        )
    return found


def _choose_stand_ins(characters: set[str]) -> dict[str, str]:
    """Return a replacement for each character that sentencepiece reserves.

    Replacements are private-use characters that the text does not contain, from the end of Unicode downwards.
    """
    unused = (chr(point) for point in range(0x10FFFD, 0xE000, -1) if chr(point) not in characters)
    return {character: next(unused) for character in _OF_SENTENCEPIECE if character in characters}


def _format_rows(words: Mapping[str, int], table: Mapping[int, str]) -> Iterator[str]:
    """Yield each word with its count, in sorted order, so that the text's order does not matter."""
    for word in sorted(words):
        yield f"{word.translate(table) if table else word}\t{words[word]}"
