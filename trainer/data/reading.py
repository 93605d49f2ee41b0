"""Ways to read the files of a dataset: a few files at a time, each as a whole, or many streams in chunks.

``trainer.data.order`` has the order of the examples for the first way, and ``trainer.data.streams`` for the
second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.data.order import hash_key

_CHUNK_IDS = 2**20
_MOST_CHUNK_ROWS = 2048
_TURNS_OF_A_CHUNK = 512  # number of turns in which a stream provides the rows of a chunk
_MOST_STREAMS = 512
_MANY_FILES = 8  # if streams have more files than this, they end at nearly the same time in any case


class Reading(NamedTuple):
    """Way in which the files of a dataset are read. The order of the examples depends on it.

    open_files: number of files that are read at the same time. With chunks, it is the number of streams.
    chunk_rows: number of consecutive rows of a file that are decoded and shuffled together. 0: the whole
    file, in the order of ``trainer.data.order``.
    """

    open_files: int
    chunk_rows: int = 0

    @property
    def turn_rows(self) -> int:
        """The number of rows that a stream provides in a turn."""
        return max(1, self.chunk_rows // _TURNS_OF_A_CHUNK)

    def describe_turns(self) -> str:
        """Return a text for checkpoints about the turns of streams, or "" for whole files.

        A position in streams with other turns belongs to another order.
        """
        return f", streams of {self.turn_rows} in a turn" if self.chunk_rows else ""


WHOLE_FILES = Reading(8)
"""Way to read few files, or files whose reading cannot be shared out."""


def choose_reading(open_files: int | str, files: int, longest: int, *, is_shareable: bool) -> Reading:
    """Choose how the files of a dataset are read.

    open_files: the configured number of open files, with which files are read whole. "auto": streams, whose
    number follows from the number of files.
    files: number of files that are not empty.
    longest: largest number of ids of a row.
    is_shareable: False if the rows of a worker come from all files, for example because they are packed
    while loading.
    """
    if isinstance(open_files, int):
        return Reading(open_files)
    # Few files have no streams, because there is little to share out.
    if files <= WHOLE_FILES.open_files or not is_shareable:
        return WHOLE_FILES
    return Reading(count_streams(files), count_chunk_rows(longest))


def count_chunk_rows(longest: int) -> int:
    """Return how many consecutive rows of a file are decoded and shuffled together, if files are streams.

    With 512 streams, an update is drawn from a million examples, which take 0.4 GB of memory if they have up
    to 128 ids. Rows of more than 512 ids have smaller chunks, so that the chunks take no more than 1.4 GB.
    The next chunk of a stream is decoded when about a quarter of its chunk is left, so that the chunks in
    memory are about a quarter more than one for each stream.

    longest: largest number of ids of a row.
    """
    return max(1, min(_MOST_CHUNK_ROWS, _CHUNK_IDS // longest))


def count_streams(files: int) -> int:
    """Return the number of streams for a number of files.

    Up to 512 files, each file is a stream. With more files, there are at most 512 streams, and each has about
    equally many files. For example, 700 files make 350 streams of 2 files, because 512 streams of 1 or 2
    files would not end at the same time.
    """
    each = -(-files // _MOST_STREAMS)
    return _MOST_STREAMS if each > _MANY_FILES else -(-files // each)


def describe_streams(files: int, open_files: int, chunk_rows: int, counts: Sequence[int]) -> str:
    """Return a line for the log about how files are read as streams, and which of them each worker reads.

    files: number of files that are not empty.
    open_files: number of files that are read at the same time, which is the number of streams.
    chunk_rows: size of the chunks in which they are read.
    counts: for each worker, how many of the open files it reads.
    """
    line = f"reading {open_files} of {files} files at the same time, in chunks of {chunk_rows} rows"
    if len(counts) == 1:
        return line
    least, most = min(counts), max(counts)
    if least >= open_files:
        return f"{line}; each of the {len(counts)} workers reads all of them"
    number = str(most) if least == most else f"{least} to {most}"
    return f"{line}; each of the {len(counts)} workers reads {number} of them"


@dataclass(frozen=True)
class Chunks:
    """The division of files into chunks.

    chunk_rows: number of rows of all chunks of a file except the first and the last. 0: each file is a single
    chunk.
    """

    chunk_rows: int

    def first_size(self, name: str, rows: int) -> int:
        """Return the number of rows of a file's first chunk.

        name: name of the file.
        rows: number of rows of the file.
        """
        if not self.chunk_rows:
            return rows
        drawn = int.from_bytes(hash_key(name, "first chunk")[:4], "little")
        return min(rows, 1 + drawn % self.chunk_rows)

    def sizes(self, name: str, rows: int) -> list[int]:
        """Return the number of rows of each chunk of a file. The arguments are those of ``first_size``."""
        found = [self.first_size(name, rows)]
        if found[0] == rows:
            return found
        whole, rest = divmod(rows - found[0], self.chunk_rows)
        return [*found, *([self.chunk_rows] * whole), *([rest] if rest else [])]

    def start(self, name: str, rows: int, chunk: int) -> int:
        """Return the file's row with which a chunk begins.

        chunk: number of the chunk. The other arguments are those of ``first_size``.
        """
        return self.first_size(name, rows) + (chunk - 1) * self.chunk_rows if chunk else 0
