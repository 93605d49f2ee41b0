"""Read a file of abbreviations that the user wants the sentence splitter Punkt to know."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.text.punkt.patterns import make_patterns
from bertdata.text.punkt.tables import PunktTables
from bertdata.text.punkt.variants import VARIANTS
from bertdata.unicode import characters

_COMMENT = re.compile(r"(?:^|\s)#.*")
_EXAMPLE = "an abbreviation such as Nr. or z. B."


@dataclass(frozen=True, kw_only=True, slots=True)
class Abbreviations:
    """Abbreviations read from one file of the user.

    md5: md5 of the file's bytes.
    words: for each abbreviation, its words in lower case, such as ``("z.", "b.")``. The last word always ends
        with a period. Any other word ends with a period only if it does in the file.
    """

    md5: str
    words: tuple[tuple[str, ...], ...]

    def add_to(self, tables: PunktTables) -> PunktTables:
        """Return a copy of Punkt's tables with these abbreviations added.

        Each word that ends with a period becomes a known abbreviation, so that its period does not end a
        sentence. Two adjacent words of an abbreviation become a collocation, so that no sentence ends between
        them, even if the second word has a capital letter.
        """
        # For example, the words ("z.", "b.") give the types {"z", "b"} and the pair ("z", "b."). Punkt's
        # tables store abbreviations, and the first word of a collocation, without the final period.
        types = {word[:-1] for words in self.words for word in words if word.endswith(".")}
        pairs = {
            (first[:-1], second)
            for words in self.words
            for first, second in pairwise(words)
            if first.endswith(".")
        }
        return replace(
            tables, abbreviations=tables.abbreviations | types, collocations=tables.collocations | pairs
        )


def read_abbreviations(path: str) -> Abbreviations:
    """Read the abbreviations from a UTF-8 file, one per line, with or without the last period.

    A ``#`` at the start of a line or after white space starts a comment. Raises InputError, with the line
    number, for a line that is not an abbreviation.
    """
    data = storage.read_bytes(path)
    try:
        lines = data.decode().removeprefix("\ufeff").splitlines()
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(path, data, error.start) from None
    words = []
    for number, line in enumerate(lines, 1):
        if text := _COMMENT.sub("", line).strip():
            words.append(_parse_abbreviation(text, f"{path}: line {number}"))
    if not words:
        raise InputError(f"{path}: holds no abbreviation, expected one a line, {_EXAMPLE[3:]}")
    return Abbreviations(md5=compute_md5(data), words=tuple(words))


def _parse_abbreviation(text: str, where: str) -> tuple[str, ...]:
    """Return the words of an abbreviation in lower case, with a period at the end.

    Raises InputError if the text is not an abbreviation.

    where: file and line of the text, for the message.
    """
    words = characters.lower(text if text.endswith(".") else f"{text}.").split()
    if not all(_is_word(word) for word in words):
        raise InputError(f"{where}: found {text[:80]!r}, expected {_EXAMPLE}")
    return tuple(words)


def _is_word(word: str) -> bool:
    """Return True if all supported versions of Punkt read the text as a single word.

    A text of periods alone does not count.
    """
    return word.strip(".-") != "" and all(
        make_patterns(variant).word.findall(word) == [word] for variant in VARIANTS
    )
