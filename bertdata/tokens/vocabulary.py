"""Reads a WordPiece vocabulary file.

Dialects (the programs whose rules are used) number its tokens differently.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.errors import VocabularyError
from bertdata.records import Vocabulary
from bertdata.tokens.lines import normalize_newlines

LARGEST_VOCABULARY = 1 << 21

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"[^\"\n]+\"\s*:")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WordPieceVocabulary(Vocabulary):
    """A WordPiece vocabulary, numbered by the rules of a dialect.

    ids: id of each distinct token.
    cls, sep, mask, unk: ids of these special tokens.
    """

    ids: dict[str, int]
    cls: int
    sep: int
    mask: int
    unk: int

    @property
    def padding_id(self) -> int:
        """Id that fills the rest of a row.

        It is always 0 as in BERT's programs, whatever the id of [PAD] is.
        """
        return 0


def parse_vocabulary(
    data: bytes, name: str, dialect: Dialect, required: Sequence[str] = SPECIAL_TOKENS
) -> WordPieceVocabulary:
    """Parse a vocabulary file, which has one token per line. White space around a token is removed.

    If a token occurs twice, the dialect "mlperf" uses its first line and numbers the distinct tokens from 0.
    The other dialects use its last line, and the id of a token is its line number, counted from 0. Random
    replacements of masked tokens are drawn from the distinct tokens, in the order in which they first occur.

    data: content of the file.
    name: name of the file, for error messages.
    dialect: rules for the file.
    required: tokens that the file must contain.

    Raises VocabularyError if one is missing. Training examples need all special tokens except [PAD].
    """
    if begins_as_json(data):
        raise VocabularyError(
            f"{name}: is JSON, expected a WordPiece vocabulary, one token a line; bertdata create takes a "
            "tokenizer.json with --tokenizer"
        )
    tokens = _read_tokens(data, name, dialect)
    ids: dict[str, int] = {}
    for line, token in enumerate(tokens):
        # For example, the lines may be "a", "b", "a". With "last", the id of a is 2, the id of b is 1, and no
        # token has the id 0. Otherwise the id of a is 0 and the id of b is 1.
        if dialect.duplicate_tokens == "last":
            ids[token] = line
        else:
            ids.setdefault(token, len(ids))
    missing = [token for token in required if token not in ids]
    if missing:
        raise VocabularyError(
            f"{name}: lacks {' '.join(missing)}; expected one token a line, these among them"
            + ("; it begins with a byte-order mark: remove that" if data.startswith(b"\xef\xbb\xbf") else "")
        )
    words = ["[unused]"] * (max(ids.values()) + 1)
    for token, token_id in ids.items():
        words[token_id] = token
    return WordPieceVocabulary(
        name=name,
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        ids=ids,
        words=words,
        continues_word=bytes(word.startswith("##") for word in words),
        replacements=tuple(ids.values()),
        cls=ids["[CLS]"],
        sep=ids["[SEP]"],
        mask=ids["[MASK]"],
        unk=ids["[UNK]"],
        pad=ids.get("[PAD]", ids.get("<pad>")),
    )


def begins_as_json(data: bytes) -> bool:
    """Return True if the data begin like a JSON object. No WordPiece vocabulary file begins like this."""
    return _JSON.match(data) is not None


def _read_tokens(data: bytes, name: str, dialect: Dialect) -> list[str]:
    """Return the tokens of a vocabulary file in the order of its lines.

    Raises VocabularyError if the file is empty, is not UTF-8, or has too many lines.
    """
    try:
        text = normalize_newlines(data, dialect).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(f"{name}: line {line}: not UTF-8") from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise VocabularyError(f"{name}: is empty, expected one token a line")
    if len(lines) > LARGEST_VOCABULARY:
        raise VocabularyError(f"{name}: {len(lines)} lines, at most {LARGEST_VOCABULARY} allowed")
    return [line.strip() for line in lines]
