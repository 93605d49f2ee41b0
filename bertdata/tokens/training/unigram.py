"""Learns a Unigram vocabulary from text with sentencepiece, the original program (Kudo 2018).

The trainer of the tokenizers library is not used. It adds up probabilities in the order of a hash table,
which differs between processes. Its scores therefore differ from run to run.
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
"""A piece (token) and the logarithm of its probability."""

SPACE = "▁"
"""Character that marks a blank at the beginning of a word, U+2581."""

MOST_CHARACTERS = 1 << 24
"""Largest number of characters that sentencepiece gets to learn from, counting every occurrence of a word.

From version 0.2.2 on, sentencepiece keeps every occurrence in memory, which takes about 20 bytes per
character. If the text is longer, it gets a sample of the text.
"""

LONGEST_WORD = 1 << 12
"""Longest word in characters. Longer text without white space is cut into words of this length.

Such text occurs in languages that are written without blanks. If a long text repeats itself, the time that
sentencepiece takes grows with the square of its length.
"""

_MOST_BYTES = 1 << 30
"""Largest limit for the length of a word in bytes that sentencepiece accepts. No word reaches it."""

_RESERVED_CHARACTERS = "\0\x1f▅"
"""Characters that sentencepiece uses itself (U+001F since version 0.2.2).

It ignores words that contain one of them.
"""


def train_unigram(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    on_read: OnRead,
    on_counted: OnCounted,
) -> Any:
    """Learn a Unigram vocabulary, and return a ``tokenizers.Tokenizer`` that uses it.

    The special tokens in the result are not marked as special yet.

    text: text to learn from.
    size: largest number of tokens, including the special tokens.
    lower_case: convert the text to lower case.
    special: the special tokens.
    on_read: called with the number of bytes read since the last call.
    on_counted: called once with the counts of all words.
    """
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

    def split_unit(unit: str) -> Iterable[str]:
        """Normalise a piece of text, and split it into words."""
        for word in normalizer.normalize_str(unit).split(" "):
            for start in range(0, len(word), LONGEST_WORD):
                yield word[start : start + LONGEST_WORD]

    words = count_words(text.read_slices(on_read), split_at_blanks, split_unit, special=special.all)
    if not words.counts:
        raise text.make_no_words_error()
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
    """Learn at most ``size`` pieces (tokens) from words, and return them in the order of falling probability.

    Every character of the words is one of the pieces.

    words: count of each word. The words contain no blanks.
    special: special tokens, which must not be pieces.
    """
    sentencepiece = import_sentencepiece()
    characters = {SPACE}.union(*words)
    if size < len(characters):
        raise SettingsError(
            f"size leaves {size} tokens beside the special ones, but the text has {len(characters)} single "
            "characters"
        )
    # Replace the characters that sentencepiece uses itself by unused characters. After the training, put them
    # back into the pieces.
    stands_for = _choose_replacements(characters)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_format_rows(words, str.maketrans(stands_for)),
            model_writer=model,
            input_format="tsv",
            max_sentence_length=_MOST_BYTES,
            vocab_size=size + 1,  # One more than the size, because sentencepiece adds an unknown token.
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


def _choose_replacements(characters: set[str]) -> dict[str, str]:
    """Choose a replacement for each character that sentencepiece uses itself.

    characters: all characters of the text. A replacement is a private-use character that is not among them.
        The search goes downwards from the last code point of Unicode.
    """
    unused = (chr(point) for point in range(0x10FFFD, 0xE000, -1) if chr(point) not in characters)
    return {character: next(unused) for character in _RESERVED_CHARACTERS if character in characters}


def _format_rows(words: Mapping[str, int], table: Mapping[int, str]) -> Iterator[str]:
    """Yield the rows that sentencepiece reads, each with a word and its count, sorted by word.

    They are sorted so that the result of the training does not depend on the order of the text.

    table: replacements of characters in the words, for ``str.translate``.
    """
    for word in sorted(words):
        yield f"{word.translate(table) if table else word}\t{words[word]}"
