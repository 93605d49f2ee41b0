"""Plain-text files, each one document: a book, as NVIDIA's and Habana's preparation of BookCorpus takes it.

A file's blank lines separate nothing, since the file is one document. NVIDIA's programs write it as one
line: each line of the book, stripped at both ends and followed by a space. To MLPerf's text stage, which
knows no books, a line is a paragraph, as it is in an article. Mark-up is not cleaned: a book has none of
Wikipedia's, and what looks like it is the book's own.
"""

import re
from collections.abc import Iterable

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy
from bertdata.io.foreign_text import universal_newlines
from bertdata.io.input_files import InputFiles
from bertdata.text.reading import find_named_files

EXPECTED = "plain text in UTF-8, one document a file"

_NAME = re.compile(r"(?:.*/)?[^./][^/]*\.txt")  # no hidden files, as the originals' *.txt takes none
_BOM = b"\xef\xbb\xbf"
_ARTICLE = re.compile(rb"(?:\xef\xbb\xbf)?<doc id=")
_LOOKED_AT = 8000  # bytes in which git looks for a NUL, which makes a file binary


def find_plain_files(patterns: Iterable[str]) -> InputFiles:
    """Find the files named, and every *.txt below the directories named, in the order of their paths.

    Errors as from find_extracted_files.
    """
    return find_named_files(patterns, _NAME, "no text files found, expected *.txt, each one document")


def check_plain_text(data: bytes, name: str, *, whole: bool = True) -> str:
    """The text, without a byte-order mark. InputError for a file of another kind, and for an empty one.

    Without whole the data are the beginning of a file, which may end within a character.
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
            raise InputError.not_utf8(name, data, error.start, utf8_remedy(data, name)) from None
        text = data[: error.start].decode()
    if "\0" in text[:_LOOKED_AT]:
        raise InputError(f"{name}: looks like binary data (it holds NUL), expected {EXPECTED}")
    text = text.removeprefix("\ufeff")
    if whole and not text.strip():
        raise InputError(f"{name}: is empty, expected {EXPECTED}; remove it")
    return text


def check_plain_beginning(path: str) -> None:
    """The check of a file that is not read yet, by its first bytes. InputError as for the whole file."""
    with storage.open_input(path) as file:
        head = file.read((1 << 16) + 1)
    check_plain_text(head, path, whole=len(head) <= 1 << 16)


def paragraphs(data: bytes, name: str) -> bytes:
    """The lines of the document that are not empty, behind an empty one: what MLPerf's stages 1 and 2 leave.

    Universal newlines, as for articles.
    """
    check_plain_text(data, name)
    lines = universal_newlines(data.removeprefix(_BOM)).split(b"\n")
    return b"\n".join([b"", *filter(None, lines), b""])


def one_line(data: bytes, name: str) -> str:
    r"""The document as one line, as NVIDIA's programs format a book. Lines end at ``\n`` only."""
    lines = map(str.strip, check_plain_text(data, name).split("\n"))
    return "".join([line + " " for line in lines if line])
