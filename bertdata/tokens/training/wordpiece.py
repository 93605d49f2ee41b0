"""Learns a WordPiece vocabulary from text with the tokenizers library.

The text is split into words by the tokeniser that will use the vocabulary, so that every word can be spelled
with it. For a vocabulary file, this is BERT's tokeniser with Unicode 11.0. For a tokenizer.json, it is the
normaliser of ``tokenizers``, which has other Unicode tables, and converts a sigma at the end of a word
differently.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bertdata.config.dialects import find_dialect
from bertdata.errors import SettingsError
from bertdata.tokens.basic import split_words
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import (
    SpecialTokens,
    check_vocabulary_size,
    number_special_tokens,
)
from bertdata.tokens.training.texts import OnRead, VocabularyText, ignore_read
from bertdata.tokens.training.word_counts import (
    OnCounted,
    WordCounts,
    count_words,
    ignore_counts,
    repeat_words,
)

LIBRARY_WORD_CHARACTERS = 100
"""Longest word in characters that a tokenizer.json with WordPiece splits (``max_input_chars_per_word``).

A longer word becomes [UNK].
"""


def train_vocabulary(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    keep_accents: bool = False,
    special: SpecialTokens | None = None,
    on_read: OnRead = ignore_read,
    on_counted: OnCounted = ignore_counts,
) -> list[str]:
    """Learn a WordPiece vocabulary file, and return its tokens in the order of their ids.

    The special tokens come first. Very long words, which the tokeniser turns into [UNK], are not learned
    from.

    text: text to learn from.
    size: largest number of tokens, including the special tokens.
    lower_case: convert the text to lower case.
    keep_accents: keep the accents of lower-cased text.
    special: the special tokens. None means BERT's five special tokens.
    on_read: called with the number of bytes read since the last call.
    on_counted: called once with the counts of all words.
    """
    dialect = find_dialect("google")

    def split(unit: str) -> list[str]:
        return split_words(unit, dialect, lower_case, keep_accents)

    check_vocabulary_size(size)
    special = special or number_special_tokens("wordpiece")
    _check_learned_size(size, special)
    words = count_words(text.read_slices(on_read), split_at_blanks, split, limit=dialect.max_word_chars)
    # The tokeniser finds a special token in the text only if it is a whole word, so count it only there.
    found = {token: words.counts[token] for token in special.all if token in words.counts}
    words = replace(words, special=found)
    return _learn_wordpiece(text, words, size, special, on_counted)


def train_wordpiece(
    text: VocabularyText,
    *,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    keep_accents: bool = False,
    on_read: OnRead,
    on_counted: OnCounted,
) -> Any:
    """Learn a WordPiece vocabulary, and return a ``tokenizers.Tokenizer`` that uses it.

    The special tokens in the result are not marked as special yet. The arguments are those of
    ``train_vocabulary``.
    """
    tokenizers = import_tokenizers()
    _check_learned_size(size, special)
    normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lower_case, strip_accents=False if keep_accents else None
    )
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()

    def split(unit: str) -> Iterable[str]:
        return (word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(unit)))

    words = count_words(
        text.read_slices(on_read),
        split_at_blanks,
        split,
        limit=LIBRARY_WORD_CHARACTERS,
        special=special.all,
    )
    tokens = _learn_wordpiece(text, words, size, special, on_counted)
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            ids, unk_token=special.roles["unk"], max_input_chars_per_word=LIBRARY_WORD_CHARACTERS
        )
    )
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    return tokenizer


def split_at_blanks(text: str) -> list[str]:
    """Split a text at blanks, which a word of WordPiece or Unigram never contains."""
    return text.split(" ")


def _check_learned_size(size: int, special: SpecialTokens) -> None:
    """Raise SettingsError unless the vocabulary is large enough for tokens other than the special tokens."""
    if size <= special.number:
        raise SettingsError(f"size is {size}, expected more than the {special.number} special tokens")


def _learn_wordpiece(
    text: VocabularyText, words: WordCounts, size: int, special: SpecialTokens, on_counted: OnCounted
) -> list[str]:
    """Learn a vocabulary from counted words with ``tokenizers``, and return the tokens in the order of their
    ids.

    ``tokenizers`` runs in a single thread, so that the result is always the same.

    text: text of the words, for an error message.
    """
    if not words.counts:
        raise text.make_no_words_error()
    on_counted(words)
    tokenizers = import_tokenizers()
    # ``tokenizers`` numbers the single-character ## pieces in the order of a hash table, which differs
    # between processes. Among equally frequent pairs, these numbers decide which pair is merged. If the
    # pieces are passed as special tokens in sorted order, their numbers are always the same.
    continuations = sorted({f"##{character}" for word in words.counts for character in word[1:]})
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=special.roles["unk"]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*special.first, *continuations],
        min_frequency=2,
        show_progress=False,
        initial_alphabet=[],
    )
    tokenizer.train_from_iterator(repeat_words(words.counts), trainer)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    if len(vocabulary) > size:
        raise SettingsError(
            f"size is {size}, but the text has {len(vocabulary)} single characters and pieces"
        )
    return sorted(vocabulary, key=vocabulary.__getitem__)
