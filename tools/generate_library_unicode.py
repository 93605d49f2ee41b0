"""Finds the character classes of the library tokenizers by asking it about every code point.

    python tools/generate_library_unicode.py

It writes ``bertdata/unicode/library.json``, from which the kernel of byte-level BPE gets its tables too. The
parts of the library have different versions of Unicode: Oniguruma, which matches patterns, has 16.0. Rust's
``char``, which knows digits, has 17.0. Rust's ``regex``, which looks at the neighbours of an added token, has
16.0. The normaliser has 9.0. Where it agrees with Unicode 11.0, its classes are in
``bertdata/unicode/unicode11.json``.
"""

import os
import sys
from collections.abc import Iterable

import tokenizers
from generate_unicode11 import find_ranges, format_json_tables
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, ROOT)

from bertdata.unicode import characters  # noqa: E402
from bertdata.unicode.tables import load_unicode11  # noqa: E402

VERSION = "0.23.3"
POINTS = [cp for cp in range(sys.maxunicode + 1) if not 0xD800 <= cp < 0xE000]
CHUNK = 4096


def main() -> None:
    """Write the table.

    Exit with an error if the installed tokenizers has another version than the one expected.
    """
    if tokenizers.__version__ != VERSION:
        sys.exit(f"generate_library_unicode: needs tokenizers {VERSION}, this is {tokenizers.__version__}")
    with open(os.path.join(ROOT, "bertdata", "unicode", "library.json"), "w") as file:
        file.write(make_source())


def make_source() -> str:
    """Return the text of library.json. The class ``LibraryClasses`` explains each table in it."""
    letters, numbers = find_matches(r"\p{L}"), find_matches(r"\p{N}")
    tables = {
        "letter": letters,
        "number": numbers,
        "newer_number": find_digits() - numbers,
        "space": find_matches(r"\s"),
        "word_but_letter": find_word_characters() - letters,
        "newer_mark": find_newer_marks(),
        "never_composed": find_never_composed(),
    }
    items = {
        name: [f"[{first}, {last}]" for first, last in find_ranges(sorted(points))]
        for name, points in tables.items()
    }
    return format_json_tables(f"tokenizers {VERSION}", "tools/generate_library_unicode.py", items)


def find_matches(pattern: str) -> set[int]:
    """Return the code points that the library matches with this regular expression for one character."""
    keeps_others = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set(POINTS)
    for points in list_chunks():
        for _, (start, stop) in keeps_others.pre_tokenize_str("".join(map(chr, points))):
            found.difference_update(points[start:stop])
    return found


def find_digits() -> set[int]:
    """Return the code points that the library's pre-tokenizer ``Digits`` separates from other text."""
    apart = pre_tokenizers.Digits(individual_digits=True)
    return {
        points[start // 2]
        for points in list_chunks()
        for _, (start, stop) in apart.pre_tokenize_str("".join(f"a{chr(point)}" for point in points))
        if stop - start == 1 and start % 2
    }


def find_word_characters() -> set[int]:
    """Return the code points that the library counts as part of a word.

    It does not recognise an added token with the option ``single_word`` next to one of these characters.
    """
    tokenizer = Tokenizer(models.BPE({"y": 0}, []))
    tokenizer.add_tokens([AddedToken("x", single_word=True)])
    return {
        point
        for points in list_chunks()
        for point, encoding in zip(
            points, tokenizer.encode_batch([chr(point) + "x" for point in points]), strict=True
        )
        if 1 not in encoding.ids
    }


def find_newer_marks() -> set[int]:
    """Return the combining marks of Unicode 11.0 that the library's normaliser, with its older tables, does
    not know.
    """
    order = normalizers.NFD().normalize_str
    for point in POINTS:
        character = chr(point)
        if point not in load_unicode11().combining:
            # U+0345 has the highest combining class. So if the library knows a mark, it sorts the mark before
            # U+0345.
            assert order(f"\u0345{character}") == characters.decompose(f"\u0345{character}"), hex(point)

    def sorts_as_mark(character: str) -> bool:
        """Return True if the library sorts the character among combining marks."""
        return order(f"\u0345{character}")[0] == character or order(f"{character}\u0334")[0] == "\u0334"

    return {point for point in load_unicode11().combining if not sorts_as_mark(chr(point))}


def find_never_composed() -> set[int]:
    """Return the composed characters of Unicode 11.0 that NFC of the package ``tokenizers`` changes."""
    compose = normalizers.NFC().normalize_str
    composites = [
        point for point, decomposed in load_unicode11().decomposition.items() if len(decomposed) > 1
    ]
    return {point for point in composites if compose(chr(point)) != chr(point)}


def list_chunks() -> Iterable[list[int]]:
    """Yield all code points, in lists of at most CHUNK."""
    return (POINTS[start : start + CHUNK] for start in range(0, len(POINTS), CHUNK))


if __name__ == "__main__":
    main()
