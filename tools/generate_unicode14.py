"""Generates Unicode 14.0 tables with CPython 3.11, for the kernel that replaces wikiextractor 3.1.0.

    python3.11 tools/generate_unicode14.py

It writes ``bertdata/_native/unicode/unicode14.h``. With these tables the kernel gives the same text as the
package on Python 3.11, on whatever Python it runs. The Python engine needs no tables, because it is the
package itself. The values come from the interpreter, so they agree with its ``re`` and ``str``.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator

from generate_unicode11 import find_case_property, find_ranges, wrap_items

PROPERTIES: dict[str, Callable[[str], object]] = {
    "word": re.compile(r"\w").match,
    "decimal": str.isdecimal,
    "cased": lambda c: find_case_property(ord(c)) == "cased",
    "case_ignorable": lambda c: find_case_property(ord(c)) == "ignorable",
}
MAPPINGS: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}


def main() -> None:
    """Write the header. Exit with an error if Python has another version of Unicode."""
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(
            f"generate_unicode14: needs Python 3.11 (Unicode 14.0), this is {unicodedata.unidata_version}"
        )
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(os.path.join(root, "bertdata", "_native", "unicode", "unicode14.h"), "w") as file:
        file.write("\n".join(make_cpp_header()))


def make_cpp_header() -> Iterator[str]:
    """Yield the text of the C++ header piece by piece."""
    yield "// Unicode 14.0 data. Made by tools/generate_unicode14.py on CPython 3.11, not by hand.\n"
    yield "#pragma once\n#include <cstdint>\n\nnamespace bertdata::unicode14 {\n"
    yield "struct Range { uint32_t first, last; };\n"
    yield "// Full mapping of one code point, padded with zeros.\nstruct Mapping { uint32_t from, to[3]; };\n"
    points = [cp for cp in range(sys.maxunicode + 1) if not 0xD800 <= cp < 0xE000]
    for name, holds in PROPERTIES.items():
        found = find_ranges(cp for cp in points if holds(chr(cp)))
        if name == "decimal":
            check_digits(found)
            yield "// The value of a digit is its distance from the range's first, modulo ten."
        body = wrap_items(f"{{0x{first:X}, 0x{last:X}}}" for first, last in found)
        yield f"inline constexpr Range k_{name}[] = {{\n{body}}};\n"
    for name, change in MAPPINGS.items():
        changed = [(cp, [ord(c) for c in change(chr(cp))]) for cp in points if change(chr(cp)) != chr(cp)]
        assert all(len(to) <= 3 for _, to in changed)
        body = wrap_items(f"{{0x{cp:X}, {{{', '.join(f'0x{c:X}' for c in to)}}}}}" for cp, to in changed)
        yield f"inline constexpr Mapping k_{name}[] = {{\n{body}}};\n"
    yield "}  // namespace bertdata::unicode14\n"


def check_digits(found: list[tuple[int, int]]) -> None:
    """Raise an error unless each range of decimal digits consists of runs from 0 to 9."""
    for first, last in found:
        assert (last - first) % 10 == 9
        assert all(unicodedata.decimal(chr(cp)) == (cp - first) % 10 for cp in range(first, last + 1))


if __name__ == "__main__":
    main()
