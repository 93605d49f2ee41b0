"""A temporary file without a name, in memory while it is small."""

import io
from typing import BinaryIO


class SpooledFile:
    """Bytes written one after another, then read. Gone when it is closed, or however the process ends.

    directory: of the file on disk, where it grows beyond ``most_bytes``; None: the system's for such files.
    """

    def __init__(self, most_bytes: int, directory: str | None = None) -> None:
        self._most_bytes = most_bytes
        self._directory = directory
        self._file: BinaryIO = io.BytesIO()
        self._in_memory = True

    def write(self, data: bytes) -> None:
        """Add bytes. OSError as from the disk."""
        self._file.write(data)
        if self._in_memory and self._file.tell() > self._most_bytes:
            self._move_to_disk()

    def _move_to_disk(self) -> None:
        from tempfile import TemporaryFile  # slow to import

        small, self._file = self._file, TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed by close
        self._in_memory = False
        self._file.write(small.getbuffer())  # type: ignore[attr-defined]

    def rewind(self) -> BinaryIO:
        """The file, to be read from its begin."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
