"""Writes articles into files of about a megabyte.

As in wikiextractor, their names are AA/wiki_00 to ZZ/wiki_99.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress

from bertdata.errors import StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.file_check import FileEntry, HashingSink

FILE_BYTES = 1 << 20
_FILES_PER_DIRECTORY = 100
_LETTERS = 26


class ArticleFiles:
    """Writer that distributes articles over files. A file gets its name only when it is complete.

    If an article would make the current file larger than FILE_BYTES, the article goes to the next file. As in
    wikiextractor, this also applies to the first article of all: if it is larger than FILE_BYTES, an empty
    file comes before it.

    files: manifest entries of the complete files, of which the first come from an earlier run.
    completed: function that is called with the entry of each complete file except the last.
    """

    def __init__(
        self, commit: Commit, files: list[FileEntry], completed: Callable[[FileEntry], None]
    ) -> None:
        self.files = files
        self._commit = commit
        self._completed = completed
        self._growing = ExitStack()
        self._waiting: list[bytes] = []  # articles of the current file, at most about a megabyte
        self._bytes = 0  # size of the articles in _waiting, in bytes
        self._sink = self._open()

    @property
    def total_bytes(self) -> int:
        """Total size of all complete files in bytes."""
        return sum(entry.bytes for entry in self.files)

    def write(self, article: bytes) -> None:
        """Add an article to the current file, or to the next file if it does not fit."""
        if starts_file(self._bytes, len(article)):
            self._completed(self.close())
            self._sink = self._open()
        self._waiting.append(article)
        self._bytes += len(article)

    def close(self) -> FileEntry:
        """Complete the current file and return its manifest entry."""
        # Write all articles at once. A file has about a megabyte, and many small writes are slow on remote
        # storage.
        self._sink.write(b"".join(self._waiting))
        self._waiting.clear()
        self._growing.close()
        self._bytes = 0
        self.files.append(self._sink.entry(make_file_name(len(self.files))))
        return self.files[-1]

    def _open(self) -> HashingSink:
        """Open the next file for writing."""
        path = self._commit.path(make_file_name(len(self.files)))
        storage.make_directory(storage.get_parent(path))
        self._growing = ExitStack()
        return HashingSink(self._growing.enter_context(self._commit.open_path(path)).write)

    def __enter__(self) -> "ArticleFiles":
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is not None:
            self._growing.__exit__(*failure)  # type: ignore[arg-type]
            self._remove_empty_directory()

    def _remove_empty_directory(self) -> None:
        """Remove the directory of the next file if no file was written into it."""
        directory = storage.get_parent(self._commit.path(make_file_name(len(self.files))))
        if not storage.is_remote(directory):
            with suppress(OSError):
                os.rmdir(directory.removeprefix("file://"))


def starts_file(written: int, article: int) -> bool:
    """Return True if the next article does not fit into the current file and therefore starts a new file.

    written: number of bytes in the current file.
    article: number of bytes of the next article.
    """
    return written + article > FILE_BYTES


def count_articles_per_file(sizes: Iterable[int]) -> Iterator[int]:
    """Decide which articles go into which file, and yield the number of articles in each file.

    sizes: size of each article in bytes. If there are no articles, there is one empty file.
    """
    articles = written = 0
    for size in sizes:
        if starts_file(written, size):
            yield articles
            articles = written = 0
        articles += 1
        written += size
    yield articles


def make_file_name(number: int) -> str:
    """Return the name of a file with articles.

    number: number of the file, from 0. The names are ``AA/wiki_00`` to ``AA/wiki_99``, then ``AB/wiki_00``
        and so on.
    """
    directory, file = divmod(number, _FILES_PER_DIRECTORY)
    first, second = divmod(directory, _LETTERS)
    if first >= _LETTERS:
        raise StorageError(
            f"more than {number} files of articles, which is all that wikiextractor's names can number"
        )
    return f"{chr(ord('A') + first)}{chr(ord('A') + second)}/wiki_{file:02d}"
