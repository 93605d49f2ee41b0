"""Punkt's tables of a language: the four files of an NLTK ``punkt_tab`` folder as one record."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bertdata.errors import InputError

ABBREVIATIONS = "abbrev_types.txt"
COLLOCATIONS = "collocations.tab"
CONTEXTS = "ortho_context.tab"
SENTENCE_STARTERS = "sent_starters.txt"
TABLE_FILES = (ABBREVIATIONS, COLLOCATIONS, CONTEXTS, SENTENCE_STARTERS)

# How a word was met in the training text: at the beginning of a sentence, in its middle, or at a
# place that could be either (after an abbreviation, say); upper or lower is its first letter.
BEGINS_UPPER, MIDDLE_UPPER, UNSURE_UPPER = 2, 4, 8
BEGINS_LOWER, MIDDLE_LOWER, UNSURE_LOWER = 16, 32, 64
UPPER = BEGINS_UPPER | MIDDLE_UPPER | UNSURE_UPPER
LOWER = BEGINS_LOWER | MIDDLE_LOWER | UNSURE_LOWER

_Row = TypeVar("_Row")


@dataclass(frozen=True, kw_only=True, slots=True)
class PunktTables:
    """Word types, lower-cased and without their final period. Any number is ``##number##``.

    abbreviations: types that take a period without ending a sentence. The empty one, which Russian has,
    stands behind a last hyphen ("ab-.").
    collocations: pairs of types that belong together across a period ("J. Walter").
    sentence_starters: types that often begin a sentence.
    contexts: for each type the sum of the flags above.
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    sentence_starters: frozenset[str]
    contexts: Mapping[str, int]


def parse_tables(files: Mapping[str, bytes]) -> PunktTables:
    """The tables in the contents of the four files, by file name.

    InputError names a file that is missing, and file and line of a row that is not as expected.
    """
    return PunktTables(
        abbreviations=frozenset(_rows(files, ABBREVIATIONS, "one word or nothing", _abbreviation)),
        collocations=frozenset(_rows(files, COLLOCATIONS, "two words with a tab between them", _pair)),
        sentence_starters=frozenset(_rows(files, SENTENCE_STARTERS, "one word", _word)),
        contexts=dict(_rows(files, CONTEXTS, "a word, a tab and an even number below 128", _context)),
    )


def _rows(
    files: Mapping[str, bytes], name: str, expected: str, parse: Callable[[list[str]], _Row | None]
) -> Iterator[_Row]:
    if name not in files:
        raise InputError(f"{name}: not there; expected the four files {', '.join(TABLE_FILES)}")
    lines = files[name].removesuffix(b"\n").split(b"\n") if files[name] else []
    for number, line in enumerate(lines, 1):
        text = line.decode(errors="replace")
        row = None if "\ufffd" in text else parse(text.split("\t"))
        if row is None:
            raise InputError(f"{name}: line {number}: found {line[:80]!r}, expected {expected}")
        yield row


def _is_word(field: str) -> bool:
    """Not blank, no stray carriage return. Blanks are right in one abbreviation, the ellipsis ``. . ``."""
    return bool(field.strip()) and field.splitlines() == [field]


def _word(fields: list[str]) -> str | None:
    return fields[0] if len(fields) == 1 and _is_word(fields[0]) else None


def _abbreviation(fields: list[str]) -> str | None:
    return "" if fields == [""] else _word(fields)


def _pair(fields: list[str]) -> tuple[str, str] | None:
    return (fields[0], fields[1]) if len(fields) == 2 and all(map(_is_word, fields)) else None


def _context(fields: list[str]) -> tuple[str, int] | None:
    if len(fields) != 2 or not _is_word(fields[0]) or not (fields[1].isascii() and fields[1].isdigit()):
        return None
    flags = int(fields[1]) if len(fields[1]) < 4 else -1
    return (fields[0], flags) if flags == flags & (UPPER | LOWER) else None
