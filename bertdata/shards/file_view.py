"""An open file read at places of a reader's own, without being mapped into memory.

A mapped file that somebody cuts ends the process that reads it, with SIGBUS and without a word. A file that
is read only comes to an end too early, which is an error like any other.
"""

import io
from typing import IO, Any


class FileView(io.RawIOBase):
    """A file with a place of its own, so that several readers of one file do not disturb each other."""

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
        """The file's bytes."""
        return self._file.seek(0, io.SEEK_END)

    def read_at(self, place: int, size: int) -> bytes:
        """The bytes at a place, fewer where the file ends there."""
        self.seek(place)
        return self.read(size) or b""
