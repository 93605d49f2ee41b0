"""Plain-text files, each a single document. NVIDIA and Habana prepare the books of BookCorpus this way.

Blank lines have no meaning, since the file is one document. For the recipe nvidia, a book becomes one line,
as in NVIDIA's programs: its lines, stripped at both ends and each followed by a space. MLPerf's programs do
not read books. For the recipe mlperf, each line of a book becomes a paragraph, like a line of an article.
Books have no wiki mark-up. So text that looks like mark-up is kept.
"""

import re
from collections.abc import Iterable

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_kind import refuse_other_kinds, suggest_utf8_remedy
from bertdata.io.foreign_text import replace_line_ends
from bertdata.io.input_files import InputFiles
from bertdata.text.reading import find_named_files

EXPECTED = "plain text in UTF-8, one document a file"

# leaves out hidden files, like the pattern *.txt of NVIDIA's and Habana's programs
_NAME = re.compile(r"(?:.*/)?[^./][^/]*\.txt")
_BOM = b"\xef\xbb\xbf"
_ARTICLE = re.compile(rb"(?:\xef\xbb\xbf)?<doc id=")
_BYTES_SEARCHED_FOR_NUL = (
    8000  # number of bytes searched for a NUL, which shows a binary file (git uses the same number)
)


def find_plain_files(patterns: Iterable[str]) -> InputFiles:
    """Find the named files and every ``*.txt`` below the named directories, in the order of their paths.

    Raises MissingInputError if a pattern matches nothing or a directory has no such file, and SettingsError
    if a file is named twice.
    """
    return find_named_files(patterns, _NAME, "no text files found, expected *.txt, each one document")


def check_plain_text(data: bytes, name: str, *, whole: bool = True) -> str:
    """Check that a file is plain text, and return its text without a byte-order mark.

    Raises InputError if the file has another format or is empty.

    whole: False if ``data`` is only the start of a file, which may end inside a character.
    """
    if _ARTICLE.match(data):
        raise InputError(
            f"{name}: looks like extracted articles, expected {EXPECTED}; give it with --input-kind articles"
        )
    refuse_other_kinds(data, name, EXPECTED)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if whole or error.reason != "unexpected end of data":
            raise InputError.not_utf8(name, data, error.start, suggest_utf8_remedy(data, name)) from None
        text = data[: error.start].decode()
    if "\0" in text[:_BYTES_SEARCHED_FOR_NUL]:
        raise InputError(f"{name}: looks like binary data (it holds NUL), expected {EXPECTED}")
    text = text.removeprefix("\ufeff")
    if whole and not text.strip():
        raise InputError(f"{name}: is empty, expected {EXPECTED}; remove it")
    return text


def check_plain_beginning(path: str) -> None:
    """Raise InputError if the first bytes of a file show that it is not plain text."""
    with storage.open_input(path) as file:
        head = file.read((1 << 16) + 1)
    check_plain_text(head, path, whole=len(head) <= 1 << 16)


def split_paragraphs(data: bytes, name: str) -> bytes:
    r"""Return the document's lines that are not empty as paragraphs, with an empty line before the first.

    Articles have this format after stages 1 and 2 of MLPerf's text processing (tags and mark-up removed).
    Lines end at ``\n``, ``\r`` or ``\r\n``.
    """
    check_plain_text(data, name)
    lines = replace_line_ends(data.removeprefix(_BOM)).split(b"\n")
    return b"\n".join([b"", *filter(None, lines), b""])


def join_book_lines(data: bytes, name: str) -> str:
    r"""Return the document as one line, as NVIDIA's programs format a book. Lines end at ``\n`` only."""
    lines = map(str.strip, check_plain_text(data, name).split("\n"))
    return "".join([line + " " for line in lines if line])
