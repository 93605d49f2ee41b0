"""Extracted articles in files of a megabyte, as wikiextractor writes them: AA/wiki_00 to ZZ/wiki_99."""

from collections.abc import Callable
from contextlib import ExitStack

from bertdata.errors import StorageError
from bertdata.io import storage
from bertdata.io.commit import Commit
from bertdata.io.file_check import FileEntry, HashingSink

FILE_BYTES = 1 << 20
_FILES_PER_DIRECTORY = 100
_LETTERS = 26


class ArticleFiles:
    """Writes articles one after another; a file appears under its name when it is complete.

    An article that would bring a file over FILE_BYTES starts the next (so an article larger than that,
    coming first, leaves an empty file before it: wikiextractor's rule, kept). ``files`` holds the
    entries of the complete files, at the start those of an earlier run. ``completed`` is called after
    each of them but the last.
    """

    def __init__(
        self, commit: Commit, files: list[FileEntry], completed: Callable[[FileEntry], None]
    ) -> None:
        self.files = files
        self._commit = commit
        self._completed = completed
        self._growing = ExitStack()
        self._sink = self._open()

    @property
    def total_bytes(self) -> int:
        """The size of all complete files."""
        return sum(entry.bytes for entry in self.files)

    def write(self, article: bytes) -> None:
        """Add one article."""
        if self._sink.bytes + len(article) > FILE_BYTES:
            self._completed(self.close())
            self._sink = self._open()
        self._sink.write(article)

    def close(self) -> FileEntry:
        """Complete the file that grows; its entry."""
        self._growing.close()
        self.files.append(self._sink.entry(file_name(len(self.files))))
        return self.files[-1]

    def _open(self) -> HashingSink:
        path = self._commit.path(file_name(len(self.files)))
        storage.make_directory(storage.parent(path))
        self._growing = ExitStack()
        return HashingSink(self._growing.enter_context(self._commit.open_path(path)).write)

    def __enter__(self) -> "ArticleFiles":
        return self

    def __exit__(self, *failure: object) -> None:
        if failure[0] is not None:
            self._growing.__exit__(*failure)  # type: ignore[arg-type]


def file_name(number: int) -> str:
    """The name of the file of that number: ``AA/wiki_00``, ... ``AA/wiki_99``, ``AB/wiki_00``, ..."""
    directory, file = divmod(number, _FILES_PER_DIRECTORY)
    first, second = divmod(directory, _LETTERS)
    if first >= _LETTERS:
        raise StorageError(
            f"more than {number} files of articles, which is all that wikiextractor's names can number"
        )
    return f"{chr(ord('A') + first)}{chr(ord('A') + second)}/wiki_{file:02d}"
