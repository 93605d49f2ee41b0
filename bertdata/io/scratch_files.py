"""Files that one step of a run leaves for a later one, and by which a later run goes on.

They wait in ``unfinished/`` with a note, or, where the output is a bucket, in a temporary directory.
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

NOTES = "sorted/"
"""Beginning of the names by which the commit protocol knows these files; no shard's name has a slash."""

_BLOCK_BYTES = 1 << 20


class ScratchEntry(NamedTuple):
    """A whole file as a later run looks for it. The name is relative to the dataset's directory.

    A CRC-32 finds what a crash or a disk does to a file of ours, in a quarter of an md5's time.
    """

    name: str
    bytes: int
    crc32: int

    def fits(self, directory: str) -> bool:
        """True if the directory's file of that name has these bytes."""
        path, found = storage.join(directory, self.name), 0
        try:
            if storage.size(path) != self.bytes:
                return False
            with storage.open_input(path) as file:
                while block := file.read(_BLOCK_BYTES):
                    found = zlib.crc32(block, found)
        except MissingInputError:
            return False
        return found == self.crc32


class ScratchSink:
    """Passes bytes on to a file, with their number and checksum. name: of its entry."""

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
        """The entry of the file that was written."""
        return ScratchEntry(name=self._name, bytes=self._bytes, crc32=self._crc32)


class KeptFiles(NamedTuple):
    """The whole files of an earlier run, and the note that lists them."""

    paths: tuple[str, ...]
    note: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScratchFiles:
    """The files of one task. Picklable.

    name: the task's. source: digest of what the files are made of. folder: a temporary directory, None:
    ``unfinished/``, where a later run finds the files.
    """

    commit: Commit
    name: str
    source: str
    folder: str | None

    def kept(self) -> KeptFiles | None:
        """The files of an earlier run, if they were made of the same source and are still whole."""
        note = self.commit.read_note(NOTES + self.name) if self.folder is None else None
        if note is None or note.get("source") != self.source:
            return None
        try:
            entries = parse_entry_list(ScratchEntry, note.get("files"))
        except ManifestError:
            return None  # a note of another version
        if not all(entry.fits(self.commit.directory) for entry in entries):
            return None
        return KeptFiles(tuple(self.commit.path(entry.name) for entry in entries), note)

    @contextmanager
    def open(self, ending: str = "") -> Iterator[ScratchSink]:
        """Open a new file, named for the task and with that ending."""
        name = self.commit.scratch_name(f"{NOTES}{self.name}{ending}")
        if self.folder is None:
            path, opened = self.commit.path(name), self.commit.open(name)
        else:
            path = storage.join(self.folder, storage.base_name(name))
            opened = storage.open_output(path)
        with opened as file:
            yield ScratchSink(file, path, name)

    def note(self, entries: Sequence[ScratchEntry], **facts: Any) -> None:
        """Note that the files are whole, where a later run can find them. facts: more for it to know."""
        if self.folder is None:
            files = [entry._asdict() for entry in entries]
            self.commit.note(NOTES + self.name, {"source": self.source, "files": files, **facts})


@contextmanager
def scratch_folder(directory: str) -> Iterator[str | None]:
    """The folder of scratch files of a dataset. None: its ``unfinished/``.

    Of a bucket a temporary directory, for each piece is read back by itself.
    """
    if not storage.is_remote(directory):
        yield None
        return
    with TemporaryDirectory() as folder:
        yield folder


def forget_scratch(commit: Commit) -> None:
    """Remove all scratch files and their notes, so that the directory may be made with other settings."""
    for name in commit.noted():
        if name.startswith(NOTES):
            commit.forget(name)
    for name in storage.list_files(commit.unfinished):
        if name.endswith(".scratch"):
            storage.remove(storage.join(commit.unfinished, name), missing_ok=True)
