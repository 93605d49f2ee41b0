"""Generates the Unicode 11.0 tables of both engines with CPython 3.7, which has this version of Unicode.

    python3.7 tools/generate_unicode11.py

It writes ``bertdata/unicode/unicode11.json`` for the Python engine. From this file it makes the header
``bertdata/_native/unicode/unicode11.h`` for the C++ kernels. The values come from the interpreter itself, so
the tables agree with ``str.lower``, ``re`` and ``unicodedata`` of Python 3.7.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from typing import Callable, Iterable, NamedTuple

CLASSES = ("space", "control", "unassigned", "punctuation", "nonspacing_mark")
# Circled and squared letters. They are the only characters of Unicode 11.0 that are alphabetic (property
# Other_Alphabetic) but whose category is not letter, letter number or mark.
CIRCLED_LETTERS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def is_letter_or_mark(character: str) -> bool:
    r"""Return True if the pattern ``\w`` of the package ``regex`` matches the character and ``\d`` does not.

    Apart from digits, such characters are those with the property "word" of Unicode's UTS 18.
    """
    category = unicodedata.category(character)
    return (
        category[0] in "LM"
        or category in ("Nl", "Pc")
        or character in "\u200c\u200d"
        or any(first <= ord(character) <= last for first, last in CIRCLED_LETTERS)
    )


# Properties that do not follow from a character's category. "letter_like" are the characters that match \w of
# the module re but not \d, including "_".
PREDICATES: dict[str, Callable[[str], object]] = {
    "uppercase": str.isupper,
    "lowercase": str.islower,
    "decimal": re.compile(r"\d").match,
    "letter_like": re.compile(r"[^\W\d]").match,
    "letter_or_mark": is_letter_or_mark,
}
HANGUL = range(0xAC00, 0xD7A4)
WIDTH = 96


class UnicodeTables(NamedTuple):
    """Tables of the properties of characters.

    ranges: for each property, the first and last code point of each range that has it.
    lower: pairs of a code point and the code points of its lower case.
    upper: pairs of a code point and the code points of its upper case.
    decomposition: pairs of a code point and its canonical decomposition.
    combining: pairs of a code point and its combining class.
    """

    ranges: dict[str, list[tuple[int, int]]]
    lower: list[tuple[int, list[int]]]
    upper: list[tuple[int, list[int]]]
    decomposition: list[tuple[int, list[int]]]
    combining: list[tuple[int, int]]


def main() -> None:
    """Write both files. Exit with an error if Python has another version of Unicode."""
    if unicodedata.unidata_version != "11.0.0":
        sys.exit(
            "generate_unicode11: needs Python 3.7 (Unicode 11.0.0), this is %s" % unicodedata.unidata_version
        )
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bertdata")
    data = make_json(collect_tables())
    with open(os.path.join(package, "unicode", "unicode11.json"), "w") as file:
        file.write(data)
    with open(os.path.join(package, "_native", "unicode", "unicode11.h"), "w") as file:
        file.write(make_cpp_header(parse_tables(data)))


def collect_tables() -> UnicodeTables:
    """Collect from this interpreter all properties of characters that the Python and C++ engines use."""
    points = range(sys.maxunicode + 1)
    found = {name: find_ranges(cp for cp in points if find_general_class(cp) == name) for name in CLASSES}
    found["cased"] = find_ranges(cp for cp in points if find_case_property(cp) == "cased")
    found["case_ignorable"] = find_ranges(cp for cp in points if find_case_property(cp) == "ignorable")
    for name, holds in PREDICATES.items():
        found[name] = find_ranges(cp for cp in points if holds(chr(cp)))
    return UnicodeTables(
        ranges=found,
        lower=[(cp, [ord(c) for c in chr(cp).lower()]) for cp in points if chr(cp).lower() != chr(cp)],
        upper=[(cp, [ord(c) for c in chr(cp).upper()]) for cp in points if chr(cp).upper() != chr(cp)],
        decomposition=[
            (cp, [ord(c) for c in unicodedata.normalize("NFD", chr(cp))])
            for cp in points
            if cp not in HANGUL and unicodedata.normalize("NFD", chr(cp)) != chr(cp)
        ],
        combining=[(cp, unicodedata.combining(chr(cp))) for cp in points if unicodedata.combining(chr(cp))],
    )


def find_general_class(cp: int) -> str | None:
    """Return the class that BERT's cleaning of text gives a character, or None for an ordinary character."""
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


def find_case_property(cp: int) -> str | None:
    """Return the class of a character in Python's rule that decides how a capital sigma is lower-cased.

    The class is "cased" for a letter with case, "ignorable" for a character that is skipped when the rule
    looks for a cased neighbour, and None for any other.
    """
    if 0xD800 <= cp < 0xE000:
        return None
    # The class is found by lower-casing a capital sigma after the character. After a cased letter, sigma
    # becomes a final sigma, even if ignorable characters are between the letter and sigma.
    after_letter = ("A" + chr(cp) + "\u03a3").lower().endswith("\u03c2")
    alone = (chr(cp) + "\u03a3").lower().endswith("\u03c2")
    if after_letter:
        return "cased" if alone else "ignorable"
    return None


def find_ranges(points: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive code points, each as its first and its last code point.

    points: the code points, in ascending order.
    """
    runs: list[tuple[int, int]] = []
    for cp in points:
        if runs and cp == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], cp)
        else:
            runs.append((cp, cp))
    return runs


def list_mappings(tables: UnicodeTables) -> list[tuple[str, list[tuple[int, list[int]]]]]:
    """Return the tables that map a code point to others (lower, upper, decomposition), each with its name."""
    names = ("lower", "upper", "decomposition")
    return [(name, getattr(tables, name)) for name in names]


def wrap_items(items: Iterable[str]) -> str:
    """Return the items as lines of at most WIDTH characters."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join([*lines, line]) + "\n"


def make_json(tables: UnicodeTables) -> str:
    """Return the text of unicode11.json."""
    items = {name: ["[%d, %d]" % pair for pair in found] for name, found in tables.ranges.items()}
    for name, mapping in list_mappings(tables):
        items[name] = ["[%d, %s]" % (cp, json.dumps("".join(map(chr, to)))) for cp, to in mapping]
    items["combining"] = ["[%d, %d]" % pair for pair in tables.combining]
    return format_json_tables("11.0.0 of CPython 3.7", "tools/generate_unicode11.py", items)


def format_json_tables(version: str, made_by: str, items: dict[str, list[str]]) -> str:
    """Return the text of a data file with tables of Unicode.

    version: version of Unicode or of the library that the tables are for.
    made_by: the script that makes the file.
    items: for each table, its items as JSON.
    """
    parts = ['  "version": %s' % json.dumps(version), '  "made_by": %s' % json.dumps(made_by)]
    parts += ['  "%s": [\n%s\n  ]' % (name, wrap_items(found)[:-2]) for name, found in items.items()]
    return "{\n%s\n}\n" % ",\n".join(parts)


def parse_tables(data: str) -> UnicodeTables:
    """Return the tables that the text of unicode11.json contains."""
    tables = json.loads(data)
    mapped = {
        name: [(cp, [ord(c) for c in to]) for cp, to in tables[name]]
        for name in ("lower", "upper", "decomposition")
    }
    apart = {"version", "made_by", "combining", *mapped}
    return UnicodeTables(
        ranges={
            name: [(first, last) for first, last in tables[name]] for name in tables if name not in apart
        },
        combining=[(cp, value) for cp, value in tables["combining"]],
        **mapped,
    )


def make_cpp_header(tables: UnicodeTables) -> str:
    """Return the text of the C++ header."""
    parts = [
        "// Unicode 11.0 data. Made by tools/generate_unicode11.py on CPython 3.7, not by hand.\n",
        "#pragma once\n#include <cstdint>\n\nnamespace bertdata::unicode11 {\n",
        "struct Range { uint32_t first, last; };\n",
        "// Full mapping of one code point, padded with zeros.\n"
        "struct Mapping { uint32_t from, to[4]; };\n"
        "struct Combining { uint32_t from; uint8_t ccc; };\n",
    ]
    for name, found in tables.ranges.items():
        body = wrap_items("{0x%X, 0x%X}" % (first, last) for first, last in found)
        parts.append("inline constexpr Range k_%s[] = {\n%s};\n" % (name, body))
    for name, mapping in list_mappings(tables):
        assert all(len(to) <= 4 for _, to in mapping)
        body = wrap_items("{0x%X, {%s}}" % (cp, ", ".join("0x%X" % c for c in to)) for cp, to in mapping)
        parts.append("inline constexpr Mapping k_%s[] = {\n%s};\n" % (name, body))
    body = wrap_items("{0x%X, %d}" % pair for pair in tables.combining)
    parts.append("inline constexpr Combining k_combining[] = {\n%s};\n" % body)
    parts.append("}  // namespace bertdata::unicode11\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
