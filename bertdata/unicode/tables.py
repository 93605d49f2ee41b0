"""Tables of characters, read from their data files when they are first asked for.

::

    unicode11.json        Unicode 11.0, which CPython 3.7 has
    library.json          classes of the package tokenizers, which are of several versions of Unicode
    bert_normalizer.json  characters that its BertNormalizer treats otherwise than Unicode 11.0

Programs in ``tools/`` make the files, and of the first one the kernels' header ``unicode11.h``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Ranges = tuple[tuple[int, int], ...]
"""Code points in ascending order, as pairs of a first and a last one."""


_MAPPINGS = ("lower", "upper", "decomposition", "combining")
"""Tables of Unicode 11.0 that give each code point a value; the others are ranges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unicode11:
    r"""Unicode 11.0: characters by property, mappings of code points, canonical combining classes.

    space: category Zs. control: Cc, Cf. unassigned: Cn, Co, Cs. nonspacing_mark: Mn. cased,
    case_ignorable: of the rule of the final sigma. decimal: ``\d``. letter_like: ``\w`` without ``\d``.
    letter_or_mark: "word" of Unicode's technical standard 18, without digits. lower, upper, decomposition
    (NFD): the characters that change, Hangul left out.
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

    letter, number, space: ``\p{L}``, ``\p{N}``, ``\s`` of a pattern; space is also the white space that an
    added token takes along. newer_number: numbers to the pre-tokeniser Digits alone. word_but_letter:
    ``\w`` beside an added token of single words, letters left out. newer_mark: marks that canonical order
    moves in Unicode 11.0, but not in the library. never_composed: composites that canonical composition
    leaves decomposed.
    """

    letter: Ranges
    number: Ranges
    newer_number: Ranges
    space: Ranges
    word_but_letter: Ranges
    newer_mark: Ranges
    never_composed: Ranges


@cache
def unicode11() -> Unicode11:
    """Return the tables of Unicode 11.0."""
    found: dict[str, Any] = {}
    for name, pairs in _read("unicode11.json").items():
        found[name] = dict(pairs) if name in _MAPPINGS else _ranges(pairs)
    return Unicode11(**found)


@cache
def library_classes() -> LibraryClasses:
    """Return the character classes of the package tokenizers."""
    return LibraryClasses(**{name: _ranges(pairs) for name, pairs in _read("library.json").items()})


@cache
def bert_normalizer_differences() -> Ranges:
    """Return the code points that BertNormalizer, or BertPreTokenizer, treats otherwise than Unicode 11.0."""
    return _ranges(_read("bert_normalizer.json")["different"])


def _read(name: str) -> dict[str, Any]:
    """Return the tables of a data file by name."""
    tables: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    del tables["version"], tables["made_by"]
    return tables


def _ranges(pairs: list[list[int]]) -> Ranges:
    return tuple((first, last) for first, last in pairs)
