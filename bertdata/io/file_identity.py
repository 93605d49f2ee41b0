"""The identity of an input: the file as a run first saw it, which it must stay until the run has ended.

A run reads most inputs more than once: to hash them, to look for duplicates, and piece by piece in several
processes. Were the file changed in between, the output would be made of two files under the md5 of one. So
whoever reads an input takes its identity first, and checks it after reading and before anything that was made
of the file is noted as finished.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from bertdata.errors import ChangedInputError, DataError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import file_md5, md5_of

_MARKS = ("ETag", "etag", "generation", "md5Hash", "LastModified", "updated", "modified", "mtime", "created")
"""Names under which remote file systems give a version, digest or time of a file's contents."""


class FileState(NamedTuple):
    """Size and times of a file.

    written: when its bytes last changed; of a remote file all marks of its contents. touched: when its bytes,
    its name or its rights last changed. No program can set that, so it also tells a file that took the place
    of another one of equal size and time. Empty for a remote file.
    """

    bytes: int
    written: str
    touched: str


class FileIdentity(NamedTuple):
    """A file in the state in which a run first saw it. Picklable, travels to workers, to other machines too.

    md5: of its bytes in that state, where they were hashed.
    """

    path: str
    state: FileState
    md5: str = ""

    def check(self) -> None:
        """ChangedInputError unless the file is still the same.

        Where only its name or its rights were touched, as by a new hard link, its bytes decide.
        """
        try:
            now = _state_of(self.path)
            if now == self.state:
                return
            if now[:2] == self.state[:2] and self.md5 and _md5_in_state(self.path, now) == self.md5:
                return
        except MissingInputError:
            raise changed(self.path, "it was removed") from None
        if now.bytes != self.state.bytes:
            raise changed(self.path, f"it had {self.state.bytes} bytes and now has {now.bytes}")
        raise changed(self.path, "it was written anew")

    def hashed(self) -> "FileIdentity":
        """The identity with the md5 of the bytes. ChangedInputError where the file was changed since."""
        found = self._replace(md5=file_md5(self.path))
        found.check()
        return found


def identify(path: str) -> FileIdentity:
    """Take the identity of a file that is to be read. MissingInputError where there is none."""
    return FileIdentity(path, _state_of(path))


def hashed_file(identity: FileIdentity) -> FileIdentity:
    """Hash a file that was identified before. A function for pools of workers."""
    return identity.hashed()


def check_all(identities: Iterable[FileIdentity]) -> None:
    """ChangedInputError unless all files are still the same."""
    by_path = {identity.path: identity for identity in identities}
    storage.each(list(by_path), lambda path: by_path[path].check())


@contextmanager
def unchanged(identities: Iterable[FileIdentity]) -> Iterator[None]:
    """The time in which files are read. ChangedInputError, at its end, for one that was changed.

    That counts before other faults of data: a file that was changed meanwhile may look damaged.
    """
    files = list(identities)
    try:
        yield
    except DataError:
        check_all(files)
        raise
    check_all(files)


def read_identified(path: str) -> bytes:
    """Read a whole file.

    ChangedInputError where it was changed meanwhile: what was read may be half of two files.
    """
    identity = identify(path)
    data = storage.read_bytes(path)
    identity._replace(md5=md5_of(data)).check()
    return data


def _state_of(path: str) -> FileState:
    if storage.is_remote(path):
        facts = storage.remote_facts(path)
        marks = " ".join(f"{name}={facts[name]}" for name in _MARKS if facts.get(name) is not None)
        return FileState(int(facts.get("size") or 0), marks, "")
    found = storage.status(path)
    return FileState(found.st_size, str(found.st_mtime_ns), str(found.st_ctime_ns))


@lru_cache(maxsize=1024)
def _md5_in_state(path: str, state: FileState) -> str:
    """The md5 of a file, read once in each state."""
    return file_md5(path)


def changed(path: str, what: str) -> ChangedInputError:
    """The error of a file that was changed. what: the change in words."""
    return ChangedInputError(
        f"{path}: was changed while it was being read: {what}; run the command again when nothing else "
        "writes to it"
    )
