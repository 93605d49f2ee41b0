"""Punkt's tables of a language, parsed from the four files of an NLTK ``punkt_tab`` folder."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bertdata.errors import InputError

ABBREVIATIONS = "abbrev_types.txt"
COLLOCATIONS = "collocations.tab"
CONTEXTS = "ortho_context.tab"
SENTENCE_STARTERS = "sent_starters.txt"
TABLE_FILES = (ABBREVIATIONS, COLLOCATIONS, CONTEXTS, SENTENCE_STARTERS)

# Flags for how a word occurred in Punkt's training text: at the start of a sentence, in the middle, or at
# a place that could be either, for example after an abbreviation. UPPER and LOWER is the case of its first
# letter.
BEGINS_UPPER, MIDDLE_UPPER, UNSURE_UPPER = 2, 4, 8
BEGINS_LOWER, MIDDLE_LOWER, UNSURE_LOWER = 16, 32, 64
UPPER = BEGINS_UPPER | MIDDLE_UPPER | UNSURE_UPPER
LOWER = BEGINS_LOWER | MIDDLE_LOWER | UNSURE_LOWER

_Row = TypeVar("_Row")


@dataclass(frozen=True, kw_only=True, slots=True)
class PunktTables:
    """Punkt's tables of a language.

    Words are in lower case and without their final period. Any number is stored as ``##number##``.

    abbreviations: words whose period does not end a sentence. In Russian the empty word is one of them. It
        matches a period after a hyphen ("ab-.").
    collocations: pairs of words that belong together although a period is between them ("J. Walter").
    sentence_starters: words that often start a sentence.
    contexts: for each word, how it occurred in Punkt's training text, as the sum of flags such as
        BEGINS_UPPER.
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    sentence_starters: frozenset[str]
    contexts: Mapping[str, int]


def parse_tables(files: Mapping[str, bytes]) -> PunktTables:
    """Parse the four table files of a language.

    Raises InputError if a file is missing or a row is malformed. The message names the file and the line.

    files: contents by file name.
    """
    return PunktTables(
        abbreviations=frozenset(
            _parse_rows(files, ABBREVIATIONS, "one word or nothing", _parse_abbreviation)
        ),
        collocations=frozenset(
            _parse_rows(files, COLLOCATIONS, "two words with a tab between them", _parse_pair)
        ),
        sentence_starters=frozenset(_parse_rows(files, SENTENCE_STARTERS, "one word", _parse_word)),
        contexts=dict(
            _parse_rows(files, CONTEXTS, "a word, a tab and an even number below 128", _parse_context)
        ),
    )


def _parse_rows(
    files: Mapping[str, bytes], name: str, expected: str, parse: Callable[[list[str]], _Row | None]
) -> Iterator[_Row]:
    """Yield the parsed rows of a table file.

    Raises InputError if the file is missing or a row is malformed.

    expected: description of a row, for the error message.
    parse: function that parses the fields of a row, and returns None for a malformed row.
    """
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
    """Return True if the field holds a word: it is not blank and contains no line end.

    Spaces inside are allowed, because the abbreviation ``. . `` (an ellipsis) contains some.
    """
    return bool(field.strip()) and field.splitlines() == [field]


def _parse_word(fields: list[str]) -> str | None:
    """Parse a row with a word. Returns None if the row is malformed."""
    return fields[0] if len(fields) == 1 and _is_word(fields[0]) else None


def _parse_abbreviation(fields: list[str]) -> str | None:
    """Parse a row with an abbreviation. Returns None if the row is malformed."""
    return "" if fields == [""] else _parse_word(fields)


def _parse_pair(fields: list[str]) -> tuple[str, str] | None:
    """Parse a row with a pair of words. Returns None if the row is malformed."""
    return (fields[0], fields[1]) if len(fields) == 2 and all(map(_is_word, fields)) else None


def _parse_context(fields: list[str]) -> tuple[str, int] | None:
    """Parse a row with a word and the sum of its flags. Returns None if the row is malformed."""
    if len(fields) != 2 or not _is_word(fields[0]) or not (fields[1].isascii() and fields[1].isdigit()):
        return None
    flags = int(fields[1]) if len(fields[1]) < 4 else -1
    return (fields[0], flags) if flags == flags & (UPPER | LOWER) else None
