"""Unicode tables, which are loaded from JSON files on first use.

::

    unicode11.json        Unicode 11.0, as in CPython 3.7
    library.json          character classes of the package tokenizers, which follow several Unicode versions
    bert_normalizer.json  characters that BertNormalizer of tokenizers treats unlike Unicode 11.0

Programs in ``tools/`` generate these files. The header ``unicode11.h`` of the C++ kernels is generated from
``unicode11.json``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points in ascending order, each given by its first and last code point."""


_MAPPINGS = ("lower", "upper", "decomposition", "combining")
"""Names of the tables in unicode11.json that map code points to values. The other tables are ranges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unicode11:
    r"""Tables of Unicode 11.0: ranges of characters with a property, and mappings of code points.

    space: category Zs (space separators).
    control: categories Cc and Cf (control and format characters).
    unassigned: categories Cn, Co and Cs.
    punctuation: categories P*.
    nonspacing_mark: category Mn.
    cased: characters with a case, for the rule of the final sigma.
    case_ignorable: characters that the rule of the final sigma skips.
    uppercase: characters with the property Uppercase.
    lowercase: characters with the property Lowercase.
    decimal: characters that ``\d`` matches.
    letter_like: characters that ``\w`` matches and ``\d`` does not.
    letter_or_mark: property "word" of Unicode's technical standard 18, without digits.
    lower: lower case of each character that has a different lower case.
    upper: upper case of each character that has a different upper case.
    decomposition: canonical decomposition of each character that has one, except Hangul syllables.
    combining: canonical combining class of each combining character.
    """

    space: Ranges
    control: Ranges
    unassigned: Ranges
    punctuation: Ranges
    nonspacing_mark: Ranges
    cased: Ranges
    case_ignorable: Ranges
    uppercase: Ranges
    lowercase: Ranges
    decimal: Ranges
    letter_like: Ranges
    letter_or_mark: Ranges
    lower: Mapping[int, str]
    upper: Mapping[int, str]
    decomposition: Mapping[int, str]
    combining: Mapping[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryClasses:
    r"""Character classes of the package tokenizers.

    letter: characters that ``\p{L}`` matches in its patterns.
    number: characters that ``\p{N}`` matches.
    newer_number: characters that only the pre-tokeniser Digits treats as numbers.
    space: characters that ``\s`` matches. An added token may also include these on its left or right side.
    word_but_letter: characters other than letters that ``\w`` matches. They must not be next to an added
    token that has the flag single_word.
    newer_mark: marks that have a combining class in Unicode 11.0 but not in tokenizers.
    never_composed: characters that are always decomposed in NFC.
    """

    letter: Ranges
    number: Ranges
    newer_number: Ranges
    space: Ranges
    word_but_letter: Ranges
    newer_mark: Ranges
    never_composed: Ranges


@cache
def load_unicode11() -> Unicode11:
    """Load the tables of Unicode 11.0, once per process."""
    found: dict[str, Any] = {}
    for name, pairs in _read("unicode11.json").items():
        found[name] = dict(pairs) if name in _MAPPINGS else _convert_ranges(pairs)
    return Unicode11(**found)


@cache
def load_library_classes() -> LibraryClasses:
    """Load the character classes of the package tokenizers, once per process."""
    return LibraryClasses(**{name: _convert_ranges(pairs) for name, pairs in _read("library.json").items()})


@cache
def load_bert_normalizer_differences() -> Ranges:
    """Load the ranges of code points that BertNormalizer or BertPreTokenizer of tokenizers treats unlike
    Unicode 11.0.
    """
    return _convert_ranges(_read("bert_normalizer.json")["different"])


def _read(name: str) -> dict[str, Any]:
    """Read a data file, and return its tables by name."""
    tables: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    del tables["version"], tables["made_by"]
    return tables


def _convert_ranges(pairs: list[list[int]]) -> Ranges:
    """Convert lists of a first and a last code point, as JSON has them, to tuples."""
    return tuple((first, last) for first, last in pairs)
