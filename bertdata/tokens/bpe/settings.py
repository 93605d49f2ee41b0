"""Settings of a byte-level BPE, as recognised in a tokenizer.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

Pattern = Literal["gpt2", "llama3", "qwen2"]
"""Name of a pattern that splits text into pre-tokens: the model that introduced it."""

PATTERNS: dict[str, Pattern] = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "llama3",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+": "qwen2",
}
"""Name of each supported pattern, by the pattern's text in a tokenizer.json.

The matches of each of these patterns cover a text without gaps.
"""

Digits = Literal["each", "runs"]
"""Rule that separates numbers from other text before the pattern is applied.

"each": each digit alone.
"runs": consecutive digits together.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedToken:
    """An added token, which is searched for in the text before the text is split into pre-tokens.

    content: text of the token. If ``normalized`` is True, this text is normalised too.
    lstrip: if True, the token includes the white space on its left.
    rstrip: if True, the token includes the white space on its right.
    single_word: if True, the token is found only where no character of a word is next to it.
    normalized: if True, the token is searched for in the normalised text, otherwise in the original text.
    """

    id: int
    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ByteBpe:
    """Settings of a byte-level BPE tokeniser.

    pattern: name of the pattern that splits text into pre-tokens (see ``PATTERNS``).
    digits: rule that separates numbers first (see ``Digits``), or None.
    prefix_space: if True, a blank is put before the text, and before the text after each added token, unless
        there is one.
    composes: True if the normaliser is NFC, which composes characters. False if there is no normaliser.
    whole_words: if True, a pre-token that is a token of the vocabulary becomes this token without any merges
        (the setting "ignore_merges" of a tokenizer.json).
    ids: id of each token of the model. The bytes of a token are spelled as in ``make_byte_alphabet``.
    units: for each of the 256 bytes, the id of the token that consists of this byte.
    merges: for each pair of ids, its rank and the id of the merged token. The pair with the lowest rank is
        merged first.
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
    """Return the 256 characters that represent the bytes 0 to 255 in GPT-2's vocabulary.

    A printable byte is represented by the character with the same number. The other bytes are represented by
    the characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))
