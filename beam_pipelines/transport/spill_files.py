"""Bytes on their way between stages: by themselves, or left in a file and named.

A runner on this machine holds what travels between two stages in the memory of the launching process.
Where all workers share a file system with it, large values stay on disk, and the runner holds names.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.io import storage

SUFFIX = ".parcels.tmp"


@dataclass(frozen=True, slots=True)
class Place:
    """``length`` bytes of a file, from ``start`` on."""

    path: str
    start: int
    length: int


Parcel = bytes | Place


@dataclass(frozen=True, slots=True)
class ParcelRoom:
    """Where parcels wait: a directory that all workers share; None: they travel themselves."""

    directory: str | None = None

    @classmethod
    def in_directory(cls, directory: str) -> "ParcelRoom":
        """A room in a directory of a file system; in an object store, a request for each would cost more."""
        return cls(None if storage.is_remote(directory) else directory)

    def leave(self, blobs: Sequence[bytes]) -> list[Parcel]:
        """A parcel for each blob. A repeated call makes a file of its own, and harms no other."""
        if self.directory is None:
            return list(blobs)
        storage.make_directory(self.directory)
        path = storage.join(self.directory, f"{os.urandom(12).hex()}{SUFFIX}")
        with storage.open_output(path) as file:
            starts = [0]
            for blob in blobs:
                starts.append(starts[-1] + file.write(blob))
        return [Place(path, start, len(blob)) for start, blob in zip(starts, blobs, strict=False)]

    def clear(self) -> None:
        """Remove all parcels."""
        if self.directory is None:
            return
        for name in storage.list_files(self.directory):
            if name.endswith(SUFFIX):
                storage.remove(storage.join(self.directory, name), missing_ok=True)


def part_of(parcel: Parcel, start: int, stop: int) -> Parcel:
    """The parcel's bytes from start up to stop."""
    if isinstance(parcel, bytes):
        return parcel[start:stop]
    return Place(parcel.path, parcel.start + start, stop - start)


def collect(parcel: Parcel) -> bytes:
    """The bytes themselves."""
    if isinstance(parcel, bytes):
        return parcel
    with storage.open_input(parcel.path) as file:
        file.seek(parcel.start)
        return file.read(parcel.length)
