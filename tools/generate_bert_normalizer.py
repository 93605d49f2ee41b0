"""Finds the characters that the library tokenizers treats differently from this project's WordPiece kernel.

    python tools/generate_bert_normalizer.py

It writes them to ``bertdata/unicode/bert_normalizer.json``, for the installed version of the library, in a
minute or two. They exist because the library's BertNormalizer and BertPreTokenizer have Unicode tables of
several versions, while the kernel uses Unicode 11.0. The script puts each character between two letters and
compares what the library and the kernel make of it, for every setting of casing and accents. It also compares
where they sort the character among combining characters.
"""

import sys
from itertools import product
from pathlib import Path

import tokenizers
from generate_unicode11 import find_ranges, format_json_tables
from tokenizers.normalizers import NFD, BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from bertdata.tokens.basic import clean_text
from bertdata.unicode import characters
from bertdata.unicode.tables import load_unicode11

TABLE = Path(__file__).resolve().parent.parent / "bertdata" / "unicode" / "bert_normalizer.json"
MARKS = {kind: chr(mark) for mark, kind in sorted(load_unicode11().combining.items(), reverse=True)}
"""For each combining class (a number that orders combining characters), one character that has it."""
FIRST, LAST = MARKS[min(MARKS)], MARKS[max(MARKS)]


def main() -> None:
    """Compare all characters and write the table of differences."""
    points = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
    different = {
        point
        for lower_case, strips_accents in product((False, True), repeat=2)
        for point in points
        if split_by_kernel(f"a{chr(point)}b", lower_case, strips_accents)
        != split_by_library(f"a{chr(point)}b", lower_case, strips_accents)
    }
    different.update(point for point in points if is_ordered_differently(chr(point)))
    items = {"different": [f"[{first}, {last}]" for first, last in find_ranges(sorted(different))]}
    version, maker = f"tokenizers {tokenizers.__version__}", "tools/generate_bert_normalizer.py"
    TABLE.write_text(format_json_tables(version, maker, items), encoding="utf-8")


def split_by_kernel(text: str, lower_case: bool, strips_accents: bool) -> list[str]:
    """Return the words into which the kernel splits a text, if a tokenizer.json has these settings.

    In this case the kernel converts each character to lower case separately.
    """
    words = []
    for token in clean_text(text, drops_unassigned=False).split():
        if lower_case:
            token = "".join(map(characters.lower, token))
        if strips_accents:
            decomposed = characters.decompose(token)
            token = "".join(character for character in decomposed if not characters.is_mark(character))
        for character in token:
            if characters.is_punctuation(character):
                token = token.replace(character, f" {character} ")
        words += token.split(" ")
    return [word for word in words if word]


def split_by_library(text: str, lower_case: bool, strips_accents: bool) -> list[str]:
    """Return the words into which the library tokenizers splits a text with these settings."""
    normalized = NORMALIZERS[lower_case, strips_accents].normalize_str(text)
    return [word for word, _ in SPLITTER.pre_tokenize_str(normalized)]


NORMALIZERS = {
    (lower_case, strips_accents): BertNormalizer(lowercase=lower_case, strip_accents=strips_accents)
    for lower_case, strips_accents in product((False, True), repeat=2)
}
SPLITTER = BertPreTokenizer()
DECOMPOSE = NFD()


def is_ordered_differently(character: str) -> bool:
    """Return True if kernel and library sort the character differently among combining marks.

    Sorting is part of the normal form NFD.
    """
    # Most characters are not combining marks. They are recognised by a quick test, with a mark of the lowest
    # and a mark of the highest combining class.
    few = f"a{LAST}{character}a{character}{FIRST}"
    if DECOMPOSE.normalize_str(few) == few == characters.decompose(few):
        return False
    text = "".join(f"a{mark}{character}a{character}{mark}" for mark in MARKS.values())
    return bool(DECOMPOSE.normalize_str(text) != characters.decompose(text))


if __name__ == "__main__":
    main()
