"""A WordPiece vocabulary trained on text, by the tokenizers library."""

import os
from collections.abc import Iterator

from bertdata.config.dialects import SPECIAL_TOKENS
from bertdata.errors import InputError, MissingExtraError, SettingsError, install_extra
from bertdata.io import storage
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy

_FIRST_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
assert set(_FIRST_TOKENS) == set(SPECIAL_TOKENS)


def train_vocabulary(paths: list[str], *, size: int, lower_case: bool) -> list[str]:
    """At most ``size`` tokens, special ones first, by id.

    The text is split by this project's own tokeniser, so that the vocabulary fits it; the library
    sees one word at a time. One thread, for the same result every time.
    """
    if size <= len(_FIRST_TOKENS):
        raise SettingsError(f"size is {size}, expected more than the {len(_FIRST_TOKENS)} special tokens")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    except ImportError:
        raise MissingExtraError(
            f"train-vocab needs the package tokenizers: {install_extra('vocab')}"
        ) from None
    words = _word_counts(paths, lower_case)
    if not words:
        raise InputError(f"{', '.join(paths)}: no words to learn from")
    # The library numbers ## pieces in the order of a hash table that is new in every process, and
    # breaks ties by number. Naming them beforehand, sorted, leaves nothing to chance.
    continuations = sorted({f"##{character}" for word in words for character in word[1:]})
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*_FIRST_TOKENS, *continuations],
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


def _word_counts(paths: list[str], lower_case: bool) -> dict[str, int]:
    from bertdata.config.dialects import find_dialect
    from bertdata.tokens.basic import split_words

    dialect = find_dialect("google")
    counts: dict[str, int] = {}
    for path in paths:
        data = storage.read_bytes(path)
        refuse_other_kinds(data, path)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise InputError.not_utf8(path, data, error.start, utf8_remedy(data, path)) from None
        for line in text.split("\n"):
            for word in split_words(line, dialect, lower_case):
                counts[word] = counts.get(word, 0) + 1
    return counts


def _repeated(counts: dict[str, int]) -> Iterator[str]:
    """Each word as often as it occurs, in an order that depends on nothing else."""
    for word in sorted(counts):
        for _ in range(counts[word]):
            yield word
