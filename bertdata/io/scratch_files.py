"""Intermediate files that one step of a run writes for a later step, reusable when the run is resumed.

They lie in ``unfinished/`` with a note that lists them. If the output is a bucket, they lie in a local
temporary directory instead and cannot be reused.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.entry_json import parse_entry_list

NOTE_PREFIX = "sorted/"
"""Prefix of the names of the notes about scratch files.

No shard's name contains a slash, so these notes never have the name of a shard's note.
"""

_BLOCK_BYTES = 1 << 20


class ScratchEntry(NamedTuple):
    """The name, size and checksum of a scratch file. The name is relative to the output directory.

    The checksum is a CRC-32, which takes a quarter of an md5's time and is enough to detect damage by a crash
    or a disk.
    """

    name: str
    bytes: int
    crc32: int

    def fits(self, directory: str) -> bool:
        """Return True if the directory has a file with this name, size and checksum."""
        path, found = storage.join(directory, self.name), 0
        try:
            if storage.read_size(path) != self.bytes:
                return False
            with storage.open_input(path) as file:
                while block := file.read(_BLOCK_BYTES):
                    found = zlib.crc32(block, found)
        except MissingInputError:
            return False
        return found == self.crc32


class ScratchSink:
    """A writer that passes bytes on to a scratch file while it counts them and computes their checksum."""

    def __init__(self, file: BinaryIO, path: str, name: str) -> None:
        self.path = path
        self._file, self._name = file, name
        self._bytes = self._crc32 = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        self._bytes += memoryview(data).nbytes

    @property
    def entry(self) -> ScratchEntry:
        """Return the file's entry (name, size and checksum) for the bytes that were written so far."""
        return ScratchEntry(name=self._name, bytes=self._bytes, crc32=self._crc32)


class KeptFiles(NamedTuple):
    """Complete scratch files from an earlier run.

    paths: the files' paths.
    note: the JSON file that lists them, with further values that the earlier run stored.
    """

    paths: tuple[str, ...]
    note: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScratchFiles:
    """The scratch files of a single task (a part of the run's work). Instances can be pickled.

    commit: the output directory.
    name: unique name of the task.
    source: digest of everything that the files' contents depend on.
    folder: temporary directory for the files. None: ``unfinished/``, where a later run can find them.
    """

    commit: Commit
    name: str
    source: str
    folder: str | None

    def kept(self) -> KeptFiles | None:
        """Return the task's scratch files from an earlier run.

        Returns None if there are none, they are damaged, or they were made from another source.
        """
        note = self.commit.read_note(NOTE_PREFIX + self.name) if self.folder is None else None
        if note is None or note.get("source") != self.source:
            return None
        try:
            entries = parse_entry_list(ScratchEntry, note.get("files"))
        except ManifestError:
            return None  # another version of bertdata wrote the note in its format
        if not all(entry.fits(self.commit.directory) for entry in entries):
            return None
        return KeptFiles(tuple(self.commit.path(entry.name) for entry in entries), note)

    @contextmanager
    def open(self, ending: str = "") -> Iterator[ScratchSink]:
        """Open a new scratch file, named after the task plus ``ending``, for writing."""
        name = self.commit.scratch_name(f"{NOTE_PREFIX}{self.name}{ending}")
        if self.folder is None:
            path, opened = self.commit.path(name), self.commit.open(name)
        else:
            path = storage.join(self.folder, storage.get_base_name(name))
            opened = storage.open_output(path, flushes=False)
        with opened as file:
            yield ScratchSink(file, path, name)

    def note(self, entries: Sequence[ScratchEntry], **facts: Any) -> None:
        """Write a note that the files are complete.

        Does nothing if the files are in a temporary directory, because no later run can find them there.

        entries: name, size and checksum of each file.
        facts: further values to store in the note.
        """
        if self.folder is None:
            files = [entry._asdict() for entry in entries]
            self.commit.note(NOTE_PREFIX + self.name, {"source": self.source, "files": files, **facts})


@contextmanager
def choose_scratch_folder(directory: str) -> Iterator[str | None]:
    """Yield the folder for an output directory's scratch files, or None for its ``unfinished/``.

    If the output is a bucket, the folder is a local temporary directory, because scratch files are read back
    in many small pieces.
    """
    if not storage.is_remote(directory):
        yield None
        return
    with TemporaryDirectory() as folder:
        yield folder


def delete_scratch_files(commit: Commit) -> None:
    """Delete all scratch files and their notes, so that the directory can be used with other settings."""
    for name in commit.list_noted_pieces():
        if name.startswith(NOTE_PREFIX):
            commit.delete_note(name)
    for name in storage.list_files(commit.unfinished):
        if name.endswith(".scratch"):
            storage.remove(storage.join(commit.unfinished, name), missing_ok=True)
