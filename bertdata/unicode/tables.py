"""Unicode tables, loaded from JSON files on first use.

::

    unicode11.json        Unicode 11.0, as in CPython 3.7
    library.json          character classes of the package tokenizers, which follow several Unicode versions
    bert_normalizer.json  characters that BertNormalizer of tokenizers handles differently

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
"""Code points in ascending order, as pairs of first and last code point."""


_MAPPINGS = ("lower", "upper", "decomposition", "combining")
"""Tables of Unicode 11.0 that map code points to values. All other tables are ranges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unicode11:
    r"""Tables of Unicode 11.0: character properties, mappings of code points, canonical combining classes.

    space: category Zs.
    control: Cc and Cf.
    unassigned: Cn, Co and Cs.
    nonspacing_mark: Mn.
    cased, case_ignorable: classes used by the rule of the final sigma.
    decimal: what ``\d`` matches.
    letter_like: what ``\w`` matches, without ``\d``.
    letter_or_mark: "word" of Unicode's technical standard 18, without digits.
    lower, upper, decomposition (NFD): characters that change, without Hangul.
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

    letter, number, space: ``\p{L}``, ``\p{N}`` and ``\s`` in its patterns. An added token also strips
    ``space``.
    newer_number: characters that only the pre-tokeniser Digits treats as numbers.
    word_but_letter: ``\w`` without letters, tested next to an added token with single_word.
    newer_mark: marks that have a combining class in Unicode 11.0 but not in tokenizers.
    never_composed: characters that NFC always leaves decomposed, although they have a composed form.
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
    """Load the code points that tokenizers' BertNormalizer or BertPreTokenizer treats unlike Unicode 11.0."""
    return _convert_ranges(_read("bert_normalizer.json")["different"])


def _read(name: str) -> dict[str, Any]:
    """Return the tables of a data file, by name."""
    tables: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    del tables["version"], tables["made_by"]
    return tables


def _convert_ranges(pairs: list[list[int]]) -> Ranges:
    return tuple((first, last) for first, last in pairs)
