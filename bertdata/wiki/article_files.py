"""Extracted articles in files of a megabyte, as wikiextractor writes them: AA/wiki_00 to ZZ/wiki_99."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from bertdata.errors import StorageError

FILE_BYTES = 1 << 20
_FILES_PER_DIRECTORY = 100
_LETTERS = 26


class ArticleFiles:
    """Writes articles one after another; a file appears under its name when it is complete.

    An article that would bring a file over FILE_BYTES starts the next (so an article larger than that,
    coming first, leaves an empty file before it: wikiextractor's rule, kept). ``completed`` is called
    after each complete file but the last. ``files`` and ``bytes`` (``size`` at the start, from an earlier
    run) count what is complete, and the last one from ``close`` on.
    """

    def __init__(
        self,
        directory: Path,
        growing: Path,
        completed: Callable[["ArticleFiles"], None],
        *,
        files: int = 0,
        size: int = 0,
    ) -> None:
        self._directory = directory
        self._growing = growing
        self._completed = completed
        self.files = files
        self.bytes = size
        self._size = 0
        self._file = self._open()

    def write(self, article: bytes) -> None:
        """Add one article."""
        if self._size + len(article) > FILE_BYTES:
            self._finish_file()
            self._completed(self)
            self._file, self._size = self._open(), 0
        try:
            self._file.write(article)
        except OSError as error:
            raise self._refused(error) from error
        self._size += len(article)

    def close(self) -> None:
        """Complete the last file."""
        self._finish_file()

    def abandon(self) -> None:
        """Close the file that grows and leave it incomplete."""
        self._file.close()

    def _open(self) -> BinaryIO:
        try:
            return self._growing.open("wb")
        except OSError as error:
            raise self._refused(error) from error

    def _finish_file(self) -> None:
        path = self._directory / file_name(self.files)
        try:
            self._file.close()
            path.parent.mkdir(exist_ok=True)
            os.replace(self._growing, path)
        except OSError as error:
            raise self._refused(error) from error
        self.files += 1
        self.bytes += self._size

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(f"{self._directory / file_name(self.files)}: {error.strerror or error}")


def file_name(number: int) -> str:
    """The name of the file of that number: ``AA/wiki_00``, ... ``AA/wiki_99``, ``AB/wiki_00``, ..."""
    directory, file = divmod(number, _FILES_PER_DIRECTORY)
    first, second = divmod(directory, _LETTERS)
    if first >= _LETTERS:
        raise StorageError(
            f"more than {number} files of articles, which is all that wikiextractor's names can number"
        )
    return f"{chr(ord('A') + first)}{chr(ord('A') + second)}/wiki_{file:02d}"
