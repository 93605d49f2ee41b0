"""Articles kept on disk until it is known which shard each goes to."""

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bertdata.errors import StorageError
from bertdata.io import storage


@contextmanager
def open_spool(directory: str) -> Iterator["Spool"]:
    """An empty spool in the directory, or in the system's temporary one where that is remote.

    Its file has no name, so nothing is left of it, however the run ends.
    """
    place = None if storage.is_remote(directory) else directory.removeprefix("file://")
    with tempfile.TemporaryFile(dir=place) as file:
        yield Spool(file, place or tempfile.gettempdir())


class Spool:
    """All articles in one file, each read back by its number; memory holds eight bytes for each."""

    def __init__(self, file: BinaryIO, place: str) -> None:
        self._file = file
        self._place = place
        self._starts = array("Q", [0])

    @property
    def size(self) -> int:
        return self._starts[-1]

    def add(self, articles: Iterable[bytes]) -> None:
        """Keep articles, numbered on from those before."""
        try:
            for article in articles:
                self._file.write(article)
                self._starts.append(self._starts[-1] + len(article))
        except OSError as error:
            raise StorageError(f"{self._place}: no room for the articles: {error.strerror}") from error

    def articles(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """The articles of these numbers, in this order."""
        for number in numbers:
            start = self._starts[number]
            self._file.seek(start)
            yield self._file.read(self._starts[number + 1] - start)
