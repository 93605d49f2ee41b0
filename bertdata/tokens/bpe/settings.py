"""Settings of a byte-level BPE, as recognised in a tokenizer.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

Pattern = Literal["gpt2", "llama3", "qwen2"]
"""A pattern that splits text into pre-tokens, named after the model that introduced it."""

PATTERNS: dict[str, Pattern] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "llama3",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "qwen2",
}
"""The patterns, by their text in a tokenizer.json. The matches of a pattern cover a text without gaps."""

Digits = Literal["each", "runs"]
"""How numbers are set apart before the pattern is applied: each digit alone, or runs of digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedToken:
    """A token that is searched for in the text before everything else.

    content: the token's text. If ``normalized``, it is normalised too.
    lstrip, rstrip: the token includes the white space on its left or right.
    single_word: the token is only found if no character of a word is next to it.
    normalized: the token is searched for in the normalised text.
    """

    id: int
    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ByteBpe:
    """Settings of a byte-level BPE.

    pattern, digits: how text is split into pre-tokens (see PATTERNS and Digits).
    prefix_space: put a blank before a text, and before the text after an added token, unless the text begins
    with a blank.
    composes: True if the normaliser is NFC, which composes characters. False if there is no normaliser.
    whole_words: a pre-token that is a token of the vocabulary is not built by merges ("ignore_merges").
    ids: id of each token of the model, spelled in ``byte_alphabet``.
    units: id of the token that consists of each single byte.
    merges: rank and merged id for each pair of ids. The lowest rank is merged first.
    added: the added tokens.
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
def make_byte_alphabet() -> str:
    """Return the characters that represent the 256 bytes in GPT-2's vocabulary.

    A printable byte is represented by its own character, other bytes by characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))
