"""Settings of a byte-level BPE, as recognised in a tokenizer.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

Pattern = Literal["gpt2", "llama3", "qwen2"]
"""A pattern of pre-tokens, by the model that brought it."""

PATTERNS: dict[str, Pattern] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "llama3",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "qwen2",
}
"""The patterns by their text in a tokenizer.json. Each matches all of a text, in one match behind another."""

Digits = Literal["each", "runs"]
"""Numbers set apart before the pattern is applied: each character by itself, or runs of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedToken:
    """A token that is looked for in the text before all else.

    lstrip, rstrip: takes along the white space on its left, right. single_word: only where no word's
    character is beside it. normalized: looked for in the normalised text; content is so, too.
    """

    id: int
    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ByteBpe:
    """A byte-level BPE. ids: of each token of the model, in the alphabet of ``byte_alphabet``.

    units: the id of each byte. merges: rank and new id of each pair of ids; the lowest rank goes first.
    whole_words: a pre-token that is a token is not made by merges ("ignore_merges"). prefix_space: a blank
    goes before a text, or a piece behind an added token, that begins with none. composes: normaliser NFC.
    """

    pattern: Pattern
    digits: Digits | None
    prefix_space: bool
    composes: bool
    whole_words: bool
    ids: Mapping[str, int]
    units: tuple[int, ...]
    merges: Mapping[tuple[int, int], tuple[int, int]]
    added: tuple[AddedToken, ...]


@cache
def byte_alphabet() -> str:
    """The character that stands for each byte (GPT-2): itself if it is printable, else one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))
