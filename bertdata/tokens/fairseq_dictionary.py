"""Reads and writes fairseq's ``dict.txt``, which has a symbol (token) and its count on each line.

fairseq gives ``<s>`` the id 0, ``<pad>`` 1, ``</s>`` 2 and ``<unk>`` 3. Then follow the symbols of the file
in order, and at the end ``<mask>``. A dictionary can also be converted to a tokenizer.json with the same ids.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.errors import SettingsError, VocabularyError
from bertdata.io.foreign_text import MOST_DIGITS, decode_utf8
from bertdata.records import Vocabulary

DICTIONARY_NAME = "dict.txt"
SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
"""Symbols that fairseq gives the ids 0 to 3. They are not listed in the file."""
MASK_SYMBOL = "<mask>"
"""Mask symbol, which fairseq's task masked_lm adds after all other symbols."""
START, END = 0, 2
"""Ids of two special symbols: ``<s>``, which is put before a block, and ``</s>``, which ends a line."""

_ROLES = ("cls", "pad", "sep", "unk")
_COUNT = re.compile(rf"[+-]?[0-9]{{1,{MOST_DIGITS}}}")
_OVERWRITE = "#fairseq:overwrite"
"""Flag after the count on a line whose symbol already has an id.

From then on fairseq encodes the symbol with the id of this line.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dictionary:
    """The symbols of a ``dict.txt`` and their counts, in the order of the symbols' ids.

    A symbol may repeat an earlier symbol or a special symbol. Its line in the file then has the flag
    ``_OVERWRITE``.
    """

    symbols: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def words(self) -> list[str]:
        """The symbol of each id, including the special symbols.

        If a symbol occurs twice, fairseq encodes it with the last of its ids.
        """
        last = [] if MASK_SYMBOL in self.symbols else [MASK_SYMBOL]
        return [*SPECIAL_SYMBOLS, *self.symbols, *last]

    @property
    def unique_names(self) -> list[str]:
        """A unique name for each id: its symbol, or another name if a later id has the same symbol."""
        words = self.words
        ids = {word: number for number, word in enumerate(words)}
        found = list(words)
        for number, word in enumerate(words):
            if ids[word] != number:
                name = f"{word}#overwritten"
                while name in ids:
                    name += "#"
                ids[name] = number
                found[number] = name
        return found

    def dump(self) -> bytes:
        """Return the content of the ``dict.txt``: one line for each symbol with its count."""
        seen, lines = set(SPECIAL_SYMBOLS), list[str]()
        for symbol, count in zip(self.symbols, self.counts, strict=True):
            lines.append(f"{symbol} {count} {_OVERWRITE}\n" if symbol in seen else f"{symbol} {count}\n")
            seen.add(symbol)
        return "".join(lines).encode()


def parse_dictionary(data: bytes, name: str) -> Dictionary:
    """Parse the content of a ``dict.txt``.

    name: name of the file, for error messages.

    Raises VocabularyError, which names the first line that is wrong.
    """
    try:
        text = decode_utf8(data, keeps_mark=True)
    except ValueError as error:
        raise VocabularyError(f"{name}: {error}") from None
    # A line ends at \r, \n or \r\n, as when Python reads a text file.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    seen, symbols, counts = set(SPECIAL_SYMBOLS), list[str](), list[int]()
    for number, line in enumerate(lines, 1):
        plain = line.rstrip()
        overwrites = plain.endswith(f" {_OVERWRITE}")
        symbol, blank, count = plain.removesuffix(f" {_OVERWRITE}").rpartition(" ")
        if not blank or not _COUNT.fullmatch(count):
            raise VocabularyError(
                f"{name}: line {number}: {line!r:.80}, expected a symbol, a blank and a count"
            )
        if symbol in seen and not overwrites:
            raise VocabularyError(
                f"{name}: line {number}: the symbol {symbol!r} has an id already; fairseq takes another one "
                f"with {_OVERWRITE} behind the count"
            )
        if symbol == MASK_SYMBOL and number < len(lines):
            raise VocabularyError(
                f"{name}: line {number}: {MASK_SYMBOL} stands before other symbols, expected it last or not "
                "at all"
            )
        seen.add(symbol)
        symbols.append(symbol)
        counts.append(int(count))
    if not symbols:
        raise VocabularyError(f"{name}: is empty, expected a symbol and its count a line")
    return Dictionary(symbols=tuple(symbols), counts=tuple(counts))


def convert_dictionary(data: bytes, name: str) -> bytes:
    """Convert the content of a ``dict.txt`` to a tokenizer.json with the same ids, and return it as bytes.

    The tokenizer.json splits text at white space only, because fairseq reads text whose tokens are separated
    by blanks.
    """
    names = parse_dictionary(data, name).unique_names
    special = [*names[: len(SPECIAL_SYMBOLS)], MASK_SYMBOL]
    start, _, end, unknown = names[: len(SPECIAL_SYMBOLS)]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ids = {word: number for number, word in enumerate(names)}
    parsed: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[word], "content": word, **plain} for word in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": unknown},
    }
    # If the file overwrites a special symbol, the token's unique name no longer shows its role. A
    # post-processor then says which tokens have the roles sep and cls.
    if (start, end) != (SPECIAL_SYMBOLS[START], SPECIAL_SYMBOLS[END]):
        parsed["post_processor"] = {
            "type": "BertProcessing",
            "sep": [end, END],
            "cls": [start, START],
        }
    return json.dumps(parsed, ensure_ascii=False, separators=(",", ":")).encode()


def compute_fairseq_ids(vocabulary: Vocabulary) -> list[int]:
    """Return the id that fairseq would use for each token of the vocabulary, in the order of the vocabulary's
    ids.

    If the vocabulary is in RoBERTa's order, both ids are the same.
    Raises SettingsError if a special token is missing, or if a token has two roles.
    """
    role_ids = [vocabulary.role(role) for role in _ROLES]
    mask = vocabulary.role("mask")
    if len({*role_ids, mask}) <= len(_ROLES):
        raise SettingsError(
            f"{vocabulary.name}: one of its tokens has two roles; fairseq has a token of its own for each of "
            f"{', '.join((*_ROLES, 'mask'))}"
        )
    found = [0] * vocabulary.size
    others = [number for number in range(vocabulary.size) if number not in (*role_ids, mask)]
    # fairseq's order is <s>, <pad>, </s>, <unk>, then all other tokens in their order, then <mask>.
    for number, old in enumerate((*role_ids, *others, mask)):
        found[old] = number
    return found


def check_token_order(vocabulary: Vocabulary) -> None:
    """Raise SettingsError unless the vocabulary's ids are in fairseq's order."""
    if compute_fairseq_ids(vocabulary) != list(range(vocabulary.size)):
        raise SettingsError(
            f"{vocabulary.name}: its ids are not in fairseq's order (<s> <pad> </s> <unk> first, <mask> "
            "last); create FILE.bin, and convert TEXT DIR --to fairseq --tokenizer FILE, renumber them"
        )


def make_dictionary(vocabulary: Vocabulary, counts: Sequence[int]) -> Dictionary:
    """Make fairseq's dictionary for a vocabulary.

    counts: number of occurrences in the text of each token, in the order of fairseq's ids.

    Raises SettingsError for a token that ``dict.txt`` cannot contain.
    """
    places = compute_fairseq_ids(vocabulary)
    words = [""] * len(places)
    for old, new in enumerate(places):
        words[new] = vocabulary.words[old]
    symbols = words[len(SPECIAL_SYMBOLS) : -1]
    seen = {*SPECIAL_SYMBOLS, MASK_SYMBOL}
    for symbol in symbols:
        if symbol in seen or symbol != symbol.strip() or not symbol or "\n" in symbol:
            raise SettingsError(
                f"{vocabulary.name}: the token {symbol!r} cannot be a symbol of fairseq's {DICTIONARY_NAME}, "
                "where each is once, a line, and not among its special ones"
            )
        seen.add(symbol)
    return Dictionary(symbols=tuple(symbols), counts=tuple(counts[len(SPECIAL_SYMBOLS) : -1]))
