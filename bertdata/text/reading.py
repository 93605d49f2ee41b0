"""Extracted files: found, read, checked to be UTF-8, and their lines."""

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from io import BytesIO
from typing import BinaryIO

from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import check_beginning, looks_like_latin1, refuse_other_kinds, utf8_remedy
from bertdata.io.input_files import Chosen, InputFiles, choose_named, find_input_files
from bertdata.sources.kinds import plain_name
from bertdata.sources.unpacking import BLOCK_BYTES, ENDINGS, open_unpacked, packing_of, unpacked_blocks

_EXTRACTED_NAME = re.compile(
    rf"(.*/)?wiki_\d+({'|'.join(map(re.escape, ENDINGS))})?"
)  # not the wiki_00.1 that the original leaves beside it


MOST_UNPACKED_BYTES = 1 << 30
"""Articles of a compressed file. Extracted ones have a megabyte, or what WikiExtractor was asked for."""


TWICE = "its articles would be written"


def find_extracted_files(patterns: Iterable[str]) -> InputFiles:
    """Find the files named, and every wiki_<nn> below the directories named, in the order of their paths.

    The order is that of the path's characters, whatever order the patterns come in: it decides which
    articles are withheld. MissingInputError for a pattern that names nothing and for a directory
    without such files; SettingsError for a file that is named twice.
    """
    missing = "no extracted files found, expected <XX>/wiki_<nn> as bertdata extract writes them"
    return find_named_files(patterns, _EXTRACTED_NAME, missing)


def is_extracted(name: str) -> bool:
    """Return True for the name of an extracted file, in any directory."""
    return _EXTRACTED_NAME.fullmatch(name) is not None


def refuse_compressed_copies(files: Iterable[str]) -> None:
    """SettingsError for a file beside a compressed one of the same name: the articles would be read twice."""
    seen: dict[str, str] = {}
    for path in files:
        other = seen.setdefault(plain_name(path), path)
        if other != path:
            raise SettingsError(
                f"{other} and {path}: one is the other compressed, so its articles would be written twice; "
                "remove one of them"
            )


def open_articles(path: str) -> AbstractContextManager[BinaryIO]:
    """Open an extracted file, of one whose name says that it is compressed the articles in it."""
    return open_unpacked(path) if path.endswith(ENDINGS) else storage.open_input(path)


def articles_size(path: str) -> int:
    """Return the bytes of an extracted file, of a compressed one those of its articles.

    Parts are cut by this size, so that compressed articles give the parts of plain ones.
    """
    if not path.endswith(ENDINGS):
        return storage.size(path)
    size = 0
    with open_articles(path) as file:
        while data := file.read(BLOCK_BYTES):
            size += len(data)
    return size


def unpack_articles(data: bytes, name: str) -> bytes:
    """Return the bytes of an extracted file, of one with the name of a compressed file its articles.

    InputError for damaged data, and for a small file that unpacks to more than a process should hold.
    """
    if not name.endswith(ENDINGS) or packing_of(data[:6]) is None:
        return data
    found: list[bytes] = []
    left = MOST_UNPACKED_BYTES
    for block in unpacked_blocks(BytesIO(data), name):
        found.append(block)
        left -= len(block)
        if left < 0:
            raise InputError(
                f"{name}: unpacks to more than {MOST_UNPACKED_BYTES >> 20} MiB of articles, expected a file "
                "as bertdata extract writes them, of a megabyte; unpack it"
            )
    return b"".join(found)


def find_named_files(patterns: Iterable[str], name: re.Pattern[str], missing: str) -> InputFiles:
    """Find the files named, and those of a fitting name below the directories named, sorted by path.

    missing: the message for a directory without any. Other errors as from find_extracted_files.
    """

    def choose(_: str, names: list[str]) -> Chosen:
        return choose_named(names, lambda found: name.fullmatch(found) is not None)

    return find_input_files(list(patterns), choose, missing=missing, twice=TWICE)


EXPECTED = "articles as bertdata extract writes them"
_JSON_REMEDY = "extract the articles again without --json"


def check_articles_text(data: bytes, name: str) -> None:
    """InputError for a file that is no text. It names file and line of a byte that is not UTF-8."""
    refuse_other_kinds(data, name, EXPECTED, json_remedy=_JSON_REMEDY)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        remedy = utf8_remedy(data, name) if looks_like_latin1(data) else "extract the articles again"
        raise InputError.not_utf8(name, data, error.start, remedy) from None


def check_articles_beginning(path: str) -> None:
    """The check of a file that is not read yet, by its first bytes, for a dry run."""
    check_beginning(path, expected=EXPECTED, json_remedy=_JSON_REMEDY, open_input=open_articles)


def count_sentences(text: bytes) -> int:
    """Number of lines that are not empty."""
    return sum(map(bool, text.split(b"\n")))
