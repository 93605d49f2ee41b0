"""Detection of input files that change while a run reads them.

A run reads most inputs several times: to hash them, to look for duplicates, and piece by piece in several
processes. If a file changed in between, the output would mix two versions of the file, and its manifest would
list the md5 of only one. So every reader takes the file's identity first. It checks the identity again after
reading, and before it records anything made from the file as finished.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from bertdata.errors import ChangedInputError, DataError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5, compute_md5

_VERSION_KEYS = (
    "ETag",
    "etag",
    "generation",
    "md5Hash",
    "LastModified",
    "updated",
    "modified",
    "mtime",
    "created",
)
"""Keys under which remote file systems report the version, digest or time of a file's contents."""


class FileState(NamedTuple):
    """The size and times of a file.

    written: time of the last change to the contents. For a remote file, all its version marks as one string.
    touched: time of the last change to contents, name or permissions (ctime), empty for a remote file. No
        program can set this time. So it differs even if another file with equal size and modification time
        has replaced this one.
    """

    bytes: int
    written: str
    touched: str


class FileIdentity(NamedTuple):
    """A file and the state in which the run first saw it.

    Instances are pickled and sent to workers, also on other machines.

    md5: digest of the contents in that state, empty if they were not hashed.
    """

    path: str
    state: FileState
    md5: str = ""

    def check(self) -> None:
        """Raise ChangedInputError if the file has changed since its identity was taken.

        If only the ctime differs, as after a new hard link or chmod, the md5 decides.
        """
        try:
            now = _read_state(self.path)
            if now == self.state:
                return
            # Size and mtime are equal but ctime differs. Either only permissions or links changed, or another
            # file was moved to this path. The md5 tells which.
            if now[:2] == self.state[:2] and self.md5 and _hash_in_state(self.path, now) == self.md5:
                return
        except MissingInputError:
            raise make_changed_error(self.path, "it was removed") from None
        if now.bytes != self.state.bytes:
            raise make_changed_error(self.path, f"it had {self.state.bytes} bytes and now has {now.bytes}")
        raise make_changed_error(self.path, "it was written anew")

    def with_md5(self) -> "FileIdentity":
        """Return the identity with the md5 filled in.

        Raises ChangedInputError if the file has changed meanwhile.
        """
        found = self._replace(md5=compute_file_md5(self.path))
        found.check()
        return found


def identify_file(path: str) -> FileIdentity:
    """Return the identity of a file: its path, size and times. To be called before the file is read.

    Raises MissingInputError if the file does not exist.
    """
    return FileIdentity(path, _read_state(path))


def add_md5(identity: FileIdentity) -> FileIdentity:
    """Return the identity with the md5 filled in, like ``identity.with_md5()``.

    This is a function of the module because a process pool can pickle such a function.
    """
    return identity.with_md5()


def check_all_unchanged(identities: Iterable[FileIdentity]) -> None:
    """Raise ChangedInputError if any of the files has changed."""
    by_path = {identity.path: identity for identity in identities}
    storage.map_paths(list(by_path), lambda path: by_path[path].check())


@contextmanager
def require_unchanged(identities: Iterable[FileIdentity]) -> Iterator[None]:
    """Raise ChangedInputError at the end of the block if any of the files has changed.

    The files are also checked if the block fails with a DataError. If one of them has changed,
    ChangedInputError replaces the DataError, because the change may be its cause.
    """
    files = list(identities)
    try:
        yield
    except DataError:
        check_all_unchanged(files)
        raise
    check_all_unchanged(files)


def read_identified(path: str) -> bytes:
    """Return the contents of a file. Raises ChangedInputError if it changed while it was read."""
    identity = identify_file(path)
    data = storage.read_bytes(path)
    identity._replace(md5=compute_md5(data)).check()
    return data


def _read_state(path: str) -> FileState:
    """Return the current state of a file."""
    if storage.is_remote(path):
        facts = storage.read_remote_info(path)
        marks = " ".join(f"{name}={facts[name]}" for name in _VERSION_KEYS if facts.get(name) is not None)
        return FileState(int(facts.get("size") or 0), marks, "")
    found = storage.read_status(path)
    return FileState(found.st_size, str(found.st_mtime_ns), str(found.st_ctime_ns))


@lru_cache(maxsize=1024)
def _hash_in_state(path: str, state: FileState) -> str:
    """Return the md5 of a file. The result is cached by path and state, so a changed file is hashed again."""
    return compute_file_md5(path)


def make_changed_error(path: str, what: str) -> ChangedInputError:
    """Return the ChangedInputError for a file.

    path: the file.
    what: the difference that shows the change, such as two sizes, for the message.
    """
    return ChangedInputError(
        f"{path}: was changed while it was being read: {what}; run the command again when nothing else "
        "writes to it"
    )
