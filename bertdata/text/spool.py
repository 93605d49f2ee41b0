"""Articles kept on disk until it is known which shard each goes to."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import BinaryIO

from bertdata.io import storage


class Spool:
    """Articles in several files, each read back by its number. Memory holds eight bytes for each."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []
        self._firsts: list[int] = []
        self._starts: list[array[int]] = []
        self._articles = 0

    def add(self, path: str, lengths: Iterable[int]) -> None:
        """Take a file of articles of these lengths, numbered on from those before."""
        starts = array("Q", [0])
        for length in lengths:
            starts.append(starts[-1] + length)
        self._files.append(self._stack.enter_context(storage.open_input(path)))
        self._firsts.append(self._articles)
        self._starts.append(starts)
        self._articles += len(starts) - 1

    def articles(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """The articles of these numbers, in this order."""
        for number in numbers:
            index = bisect_right(self._firsts, number) - 1
            starts, place = self._starts[index], number - self._firsts[index]
            self._files[index].seek(starts[place])
            yield self._files[index].read(starts[place + 1] - starts[place])

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()
