"""Spill files: temporary files for large values on their way from one stage to the next.

A local runner keeps everything between two stages in the memory of the launching process. If all workers
share a file system with this process, the stages write large values to files instead, and only the places in
these files pass through the runner.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.io.directory_protocol import ONE_RUN_ENDING

SUFFIX = f".spill{ONE_RUN_ENDING}"


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of bytes in a file: ``length`` bytes, beginning at the position ``start``."""

    path: str
    start: int
    length: int


StageBytes = bytes | FileRange
"""A value on its way to the next stage: its bytes, or the range of a temporary file that contains them."""


@dataclass(frozen=True, slots=True)
class SpillFiles:
    """The temporary files of a run that hold values between two stages.

    directory: directory of the files, which all workers share. None: no files are written, and all values
        pass through the runner.
    """

    directory: str | None = None

    @classmethod
    def in_directory(cls, directory: str) -> "SpillFiles":
        """Return temporary files in this directory, or none if it lies in an object store.

        In an object store, requests for files would cost more than passing the values through the runner.
        """
        return cls(None if storage.is_remote(directory) else directory)

    def write(self, values: Sequence[bytes]) -> list[StageBytes]:
        """Write the values to one new file, and return the range of each value in the file.

        If no files are used, the values themselves are returned. The name of the file is random. If Beam runs
        a task twice, the second attempt writes another file, and a worker that reads the first file is not
        disturbed.
        """
        if self.directory is None:
            return list(values)
        storage.make_directory(self.directory)
        path = storage.join(self.directory, f"{os.urandom(12).hex()}{SUFFIX}")
        with storage.open_output(path, flushes=False) as file:
            starts = [0]
            for value in values:
                starts.append(starts[-1] + file.write(value))
        return [FileRange(path, start, len(value)) for start, value in zip(starts, values, strict=False)]

    def remove_all(self) -> None:
        """Delete all temporary files in the directory."""
        if self.directory is None:
            return
        for name in storage.list_files(self.directory):
            if name.endswith(SUFFIX):
                storage.remove(storage.join(self.directory, name), missing_ok=True)


def count_bytes(value: StageBytes) -> int:
    """Return the size of a value in bytes, without reading it."""
    return len(value) if isinstance(value, bytes) else value.length


def cut_value(value: StageBytes, start: int, stop: int) -> StageBytes:
    """Return the bytes from ``start`` to before ``stop`` of a value, without reading a value in a file."""
    if isinstance(value, bytes):
        return value[start:stop]
    return FileRange(value.path, value.start + start, stop - start)


def read_value(value: StageBytes) -> bytes:
    """Return the bytes of a value. If they are in a temporary file, read them from there."""
    if isinstance(value, bytes):
        return value
    with storage.open_input(value.path) as file:
        file.seek(value.start)
        return file.read(value.length)
