"""Spill files: large values between two stages, kept on disk instead of in the runner's memory.

A local runner holds everything between two stages in the launcher's memory. If all workers share a file
system with it, stages write their values to files, and only the files' names pass through the runner.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.io.directory_protocol import ONE_RUN_ENDING

SUFFIX = f".spill{ONE_RUN_ENDING}"


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of bytes in a file: ``length`` bytes from the position ``start``."""

    path: str
    start: int
    length: int


StageBytes = bytes | FileRange
"""A value on its way to the next stage: the bytes themselves, or their place in a spill file."""


@dataclass(frozen=True, slots=True)
class SpillFiles:
    """The spill files of a run, in a directory that all workers share.

    directory: place of the files. None: nothing is spilled, and values pass through the runner.
    """

    directory: str | None = None

    @classmethod
    def below(cls, directory: str) -> "SpillFiles":
        """Return spill files in this directory.

        In an object store nothing is spilled, because requests cost more than passing values through the
        runner.
        """
        return cls(None if storage.is_remote(directory) else directory)

    def write(self, values: Sequence[bytes]) -> list[StageBytes]:
        """Write the values to one new file and return the range of each value.

        If nothing is spilled, return the values themselves. The file's name is random, so if a task runs
        twice, the second attempt writes another file, and a reader of the first file is not disturbed.
        """
        if self.directory is None:
            return list(values)
        storage.make_directory(self.directory)
        path = storage.join(self.directory, f"{os.urandom(12).hex()}{SUFFIX}")
        with storage.open_output(path) as file:
            starts = [0]
            for value in values:
                starts.append(starts[-1] + file.write(value))
        return [FileRange(path, start, len(value)) for start, value in zip(starts, values, strict=False)]

    def remove_all(self) -> None:
        """Delete every spill file in the directory."""
        if self.directory is None:
            return
        for name in storage.list_files(self.directory):
            if name.endswith(SUFFIX):
                storage.remove(storage.join(self.directory, name), missing_ok=True)


def count_bytes(value: StageBytes) -> int:
    """Return the size of a value in bytes, without reading it."""
    return len(value) if isinstance(value, bytes) else value.length


def cut_value(value: StageBytes, start: int, stop: int) -> StageBytes:
    """Return the bytes ``start`` to ``stop`` of a value. A spilled value is not read."""
    if isinstance(value, bytes):
        return value[start:stop]
    return FileRange(value.path, value.start + start, stop - start)


def read_value(value: StageBytes) -> bytes:
    """Return the bytes of a value, from its spill file if it is spilled."""
    if isinstance(value, bytes):
        return value
    with storage.open_input(value.path) as file:
        file.seek(value.start)
        return file.read(value.length)
