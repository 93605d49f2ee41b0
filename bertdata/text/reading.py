"""Find and read files of extracted articles, such as ``AA/wiki_00``, and check that they are text."""

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from io import BytesIO
from typing import BinaryIO

from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import check_beginning, looks_like_latin1, refuse_other_kinds, suggest_utf8_remedy
from bertdata.io.input_files import ChosenNames, InputFiles, choose_wanted_names, find_input_files
from bertdata.sources.kinds import strip_packing_ending
from bertdata.sources.unpacking import BLOCK_BYTES, ENDINGS, detect_packing, open_unpacked, unpack_blocks

# The pattern must not match wiki_00.1, an intermediate file that MLPerf's program leaves in the same
# directory.
_EXTRACTED_NAME = re.compile(rf"(.*/)?wiki_\d+({'|'.join(map(re.escape, ENDINGS))})?")


MOST_UNPACKED_BYTES = 1 << 30
"""Largest size in bytes that a compressed file may have after unpacking. Extracted files are usually about a
megabyte.
"""


TWICE = "its articles would be written"


def find_extracted_files(patterns: Iterable[str]) -> InputFiles:
    """Find the named files and every wiki_<nn> below the named directories, in the order of their paths.

    The order of the patterns does not matter. Paths are compared character by character. This order
    determines which articles are withheld for evaluation. Raises MissingInputError for a pattern that matches
    nothing and for a directory without such files, and SettingsError for a file that is named twice.
    """
    missing = "no extracted files found, expected <XX>/wiki_<nn> as bertdata extract writes them"
    return find_named_files(patterns, _EXTRACTED_NAME, missing)


def has_extracted_name(name: str) -> bool:
    """Return True if a path has the name of a file of extracted articles, such as ``AA/wiki_00``."""
    return _EXTRACTED_NAME.fullmatch(name) is not None


def refuse_compressed_copies(files: Iterable[str]) -> None:
    """Raise SettingsError if a file and its compressed copy are both inputs.

    The articles would then be read twice.
    """
    seen: dict[str, str] = {}
    for path in files:
        other = seen.setdefault(strip_packing_ending(path), path)
        if other != path:
            raise SettingsError(
                f"{other} and {path}: one is the other compressed, so its articles would be written twice; "
                "remove one of them"
            )


def open_articles(path: str) -> AbstractContextManager[BinaryIO]:
    """Open a file of extracted articles. It is unpacked if it has the name of a compressed file."""
    return open_unpacked(path) if path.endswith(ENDINGS) else storage.open_input(path)


def measure_articles(path: str) -> int:
    """Return the size of an extracted file in bytes, unpacked if it is compressed.

    MLPerf's parts are planned by this size, so that compressed articles give the same parts as plain ones.
    """
    if not path.endswith(ENDINGS):
        return storage.read_size(path)
    size = 0
    with open_articles(path) as file:
        while data := file.read(BLOCK_BYTES):
            size += len(data)
    return size


def unpack_articles(data: bytes, name: str) -> bytes:
    """Return the content of an extracted file, unpacked if its name and bytes say that it is compressed.

    Raises InputError for damaged data, and for a file that unpacks to more than MOST_UNPACKED_BYTES.
    """
    if not name.endswith(ENDINGS) or detect_packing(data[:6]) is None:
        return data
    found: list[bytes] = []
    left = MOST_UNPACKED_BYTES
    for block in unpack_blocks(BytesIO(data), name):
        found.append(block)
        left -= len(block)
        if left < 0:
            raise InputError(
                f"{name}: unpacks to more than {MOST_UNPACKED_BYTES >> 20} MiB of articles, expected a file "
                "as bertdata extract writes them, of a megabyte; unpack it"
            )
    return b"".join(found)


def find_named_files(patterns: Iterable[str], name: re.Pattern[str], missing: str) -> InputFiles:
    """Find the named files, and all matching files below the named directories, sorted by path.

    Raises MissingInputError if a pattern matches nothing or a directory has no matching file, and
    SettingsError if a file is named twice.

    name: regular expression that the whole path of a file in a directory must match.
    missing: error message for a directory without any such file.
    """

    def choose(_: str, names: list[str]) -> ChosenNames:
        """Divide a directory's files into those that match ``name`` and those to leave out."""
        return choose_wanted_names(names, lambda found: name.fullmatch(found) is not None)

    return find_input_files(list(patterns), choose, missing=missing, twice=TWICE)


EXPECTED = "articles as bertdata extract writes them"
_JSON_REMEDY = "extract the articles again without --json"


def check_articles_text(data: bytes, name: str) -> None:
    """Raise InputError if a file of articles is not text in UTF-8.

    data: content of the file, unpacked if it was compressed.
    """
    refuse_other_kinds(data, name, EXPECTED, json_remedy=_JSON_REMEDY)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        remedy = suggest_utf8_remedy(data, name) if looks_like_latin1(data) else "extract the articles again"
        raise InputError.not_utf8(name, data, error.start, remedy) from None


def check_articles_beginning(path: str) -> None:
    """Raise InputError if the first bytes of a file show that it is not text. Used for a dry run."""
    check_beginning(path, expected=EXPECTED, json_remedy=_JSON_REMEDY, open_input=open_articles)


def count_sentences(text: bytes) -> int:
    """Count the sentences of a text that has one sentence per line, between empty lines."""
    return sum(map(bool, text.split(b"\n")))
