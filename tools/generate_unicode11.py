"""Write the Unicode 11.0 tables of both engines; run with CPython 3.7, which carries Unicode 11.0.

    python3.7 tools/generate_unicode11.py

writes ``bertdata/unicode/unicode11.py`` (read by the specification) and
``bertdata/_native/unicode/unicode11.h`` (read by the kernels) from the same lists. Everything is asked of
the interpreter itself, so the tables hold what ``str.lower``, ``re`` and ``unicodedata`` of Python
3.7 do.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from typing import Callable, Iterable, NamedTuple

CLASSES = ("space", "control", "unassigned", "punctuation", "nonspacing_mark")
# What a character is by itself, apart from its category; letter_like: \w but not \d, "_" among them.
PREDICATES: dict[str, Callable[[str], object]] = {
    "uppercase": str.isupper,
    "lowercase": str.islower,
    "decimal": re.compile(r"\d").match,
    "letter_like": re.compile(r"[^\W\d]").match,
}
HANGUL = range(0xAC00, 0xD7A4)
WIDTH = 96


class Tables(NamedTuple):
    """By name, inclusive (first, last) ranges; what code points become; combining classes."""

    ranges: dict[str, list[tuple[int, int]]]
    lower: list[tuple[int, list[int]]]
    decomposition: list[tuple[int, list[int]]]
    combining: list[tuple[int, int]]


def main() -> None:
    if unicodedata.unidata_version != "11.0.0":
        sys.exit(
            "generate_unicode11: needs Python 3.7 (Unicode 11.0.0), this is %s" % unicodedata.unidata_version
        )
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bertdata")
    tables = collect()
    with open(os.path.join(package, "unicode", "unicode11.py"), "w") as file:
        file.write(python_source(tables))
    with open(os.path.join(package, "_native", "unicode", "unicode11.h"), "w") as file:
        file.write(cpp_source(tables))


def collect() -> Tables:
    """Everything the engines ask of a character."""
    points = range(sys.maxunicode + 1)
    found = {name: ranges(cp for cp in points if general_class(cp) == name) for name in CLASSES}
    found["cased"] = ranges(cp for cp in points if case_property(cp) == "cased")
    found["case_ignorable"] = ranges(cp for cp in points if case_property(cp) == "ignorable")
    for name, holds in PREDICATES.items():
        found[name] = ranges(cp for cp in points if holds(chr(cp)))
    return Tables(
        ranges=found,
        lower=[(cp, [ord(c) for c in chr(cp).lower()]) for cp in points if chr(cp).lower() != chr(cp)],
        decomposition=[
            (cp, [ord(c) for c in unicodedata.normalize("NFD", chr(cp))])
            for cp in points
            if cp not in HANGUL and unicodedata.normalize("NFD", chr(cp)) != chr(cp)
        ],
        combining=[(cp, unicodedata.combining(chr(cp))) for cp in points if unicodedata.combining(chr(cp))],
    )


def general_class(cp: int) -> str | None:
    category = unicodedata.category(chr(cp))
    if category == "Zs":
        return "space"
    if category in ("Cc", "Cf"):
        return "control"
    if category[0] == "C":
        return "unassigned"
    if category[0] == "P":
        return "punctuation"
    if category == "Mn":
        return "nonspacing_mark"
    return None


def case_property(cp: int) -> str | None:
    """How Python's final-sigma rule sees a character: cased, ignorable (skipped) or neither."""
    if 0xD800 <= cp < 0xE000:
        return None
    after_letter = ("A" + chr(cp) + "\u03a3").lower().endswith("\u03c2")
    alone = (chr(cp) + "\u03a3").lower().endswith("\u03c2")
    if after_letter:
        return "cased" if alone else "ignorable"
    return None


def ranges(points: Iterable[int]) -> list[tuple[int, int]]:
    """Inclusive (first, last) runs of ascending code points."""
    runs: list[tuple[int, int]] = []
    for cp in points:
        if runs and cp == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], cp)
        else:
            runs.append((cp, cp))
    return runs


def wrap(items: Iterable[str]) -> str:
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join([*lines, line]) + "\n"


def python_source(tables: Tables) -> str:
    parts = [
        '"""Unicode 11.0 data; made by tools/generate_unicode11.py on CPython 3.7, not by hand."""\n',
        "# fmt: off\n# ruff: noqa\n",
        'UNICODE_VERSION = "11.0.0"\n',
    ]
    for name, found in tables.ranges.items():
        body = wrap("(0x%X, 0x%X)" % (first, last) for first, last in found)
        parts.append("%s: tuple[tuple[int, int], ...] = (\n%s)\n" % (name.upper(), body))
    for name, mapping in (("lower", tables.lower), ("decomposition", tables.decomposition)):
        body = wrap("0x%X: %s" % (cp, ascii("".join(map(chr, to)))) for cp, to in mapping)
        parts.append("%s: dict[int, str] = {\n%s}\n" % (name.upper(), body))
    body = wrap("0x%X: %d" % pair for pair in tables.combining)
    parts.append("COMBINING: dict[int, int] = {\n%s}\n" % body)
    return "\n".join(parts)


def cpp_source(tables: Tables) -> str:
    parts = [
        "// Unicode 11.0 data; made by tools/generate_unicode11.py on CPython 3.7, not by hand.\n",
        "#pragma once\n#include <cstdint>\n\nnamespace bertdata::unicode11 {\n",
        "struct Range { uint32_t first, last; };\n",
        "// Full mapping of one code point, padded with zeros.\n"
        "struct Mapping { uint32_t from, to[4]; };\n"
        "struct Combining { uint32_t from; uint8_t ccc; };\n",
    ]
    for name, found in tables.ranges.items():
        body = wrap("{0x%X, 0x%X}" % (first, last) for first, last in found)
        parts.append("inline constexpr Range k_%s[] = {\n%s};\n" % (name, body))
    for name, mapping in (("lower", tables.lower), ("decomposition", tables.decomposition)):
        assert all(len(to) <= 4 for _, to in mapping)
        body = wrap("{0x%X, {%s}}" % (cp, ", ".join("0x%X" % c for c in to)) for cp, to in mapping)
        parts.append("inline constexpr Mapping k_%s[] = {\n%s};\n" % (name, body))
    body = wrap("{0x%X, %d}" % pair for pair in tables.combining)
    parts.append("inline constexpr Combining k_combining[] = {\n%s};\n" % body)
    parts.append("}  // namespace bertdata::unicode11\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
