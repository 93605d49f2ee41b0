"""A nameless temporary file that stays in memory while it is small."""

import io
from typing import BinaryIO


class SpooledFile:
    """A file that is first written, then read back.

    On disk the file has no name, so it disappears when it is closed, and when the process ends in any way.

    most_bytes: size from which the file is moved from memory to disk.
    directory: directory for the file on disk. None: the system's default.
    """

    def __init__(self, most_bytes: int, directory: str | None = None) -> None:
        self._most_bytes = most_bytes
        self._directory = directory
        self._file: BinaryIO = io.BytesIO()
        self._in_memory = True

    def write(self, data: bytes) -> None:
        """Append bytes. Raises OSError if the disk is full."""
        self._file.write(data)
        if self._in_memory and self._file.tell() > self._most_bytes:
            self._move_to_disk()

    def _move_to_disk(self) -> None:
        """Move the bytes from memory to a temporary file."""
        from tempfile import TemporaryFile  # imported here because it is slow to import

        small, self._file = self._file, TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed by close
        self._in_memory = False
        self._file.write(small.getbuffer())  # type: ignore[attr-defined]

    def rewind(self) -> BinaryIO:
        """Return the file, positioned at its beginning, for reading."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
