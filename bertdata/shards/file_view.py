"""Read an open file at a separate position for each reader, without mapping the file into memory.

If a mapped file is truncated by someone else, the reading process dies with SIGBUS and no message. Without a
mapping, reading a truncated file ends too early, which can be reported as an error.
"""

import io
import os
from array import array
from collections.abc import Sequence
from typing import IO, Any

from bertdata._native import Engine, default_engine, kernels, use_native


class FileView(io.RawIOBase):
    """A read-only view of an open file, with its own position. Several readers can therefore share the
    file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._place)
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view):
            data = self._file.read(len(view) - filled)
            if not data:
                break
            view[filled : filled + len(data)] = data
            filled += len(data)
        self._place += filled
        return filled

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            self._place = self._file.seek(offset, io.SEEK_END)
        else:
            self._place = offset + (self._place if whence == io.SEEK_CUR else 0)
        return self._place

    def tell(self) -> int:
        return self._place

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self._file.seek(0, io.SEEK_END)

    def read_at(self, place: int, size: int) -> bytes:
        """Return ``size`` bytes from the byte offset ``place`` on, or fewer if the file ends earlier."""
        self.seek(place)
        return self.read(size) or b""


def read_at(file: IO[bytes], offset: int, size: int) -> bytes:
    """Return bytes from an offset of an open file on, or fewer if the file ends earlier.

    The file's position is neither used nor moved, so several threads can read from the same file.

    size: number of bytes.
    """
    if isinstance(file, io.BytesIO):
        return bytes(file.getbuffer()[offset : offset + size])
    return os.pread(file.fileno(), size, offset)


def find_file_size(file: IO[bytes]) -> int:
    """Return the size in bytes of an open file, without moving its position."""
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes
    return os.fstat(file.fileno()).st_size


def read_ranges(
    files: Sequence[IO[bytes]], starts: Sequence[int], sizes: Sequence[int], engine: Engine | None = None
) -> tuple[bytes | memoryview, int]:
    """Read a range of bytes of each of some open files. A file may occur several times.

    Return the bytes of all ranges one behind the other, and the number of ranges before the first that the
    file does not have completely. The bytes end there.

    starts: offset of each range in its file.
    sizes: number of bytes of each range.
    """
    different = set(files)
    if use_native(engine or default_engine()) and not any(isinstance(file, io.BytesIO) for file in different):
        numbers = {file: file.fileno() for file in different}
        each = array("i", [numbers[file] for file in files])
        found: tuple[memoryview, int] = kernels.read_ranges(each, array("q", starts), array("I", sizes))
        return found
    pieces = list[bytes]()
    for file, start, size in zip(files, starts, sizes, strict=True):
        piece = read_at(file, start, size)
        if len(piece) < size:
            break
        pieces.append(piece)
    return b"".join(pieces), len(pieces)
