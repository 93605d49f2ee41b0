"""The cache of a dataset's remote files: a machine fetches each file once, and all its workers read the copy.

Of a machine's workers one fetches a file, and the others wait for it to appear. The md5 of a file is checked
as it comes. If there is no room, the files that are needed latest are dropped (Belady 1966). Files that are
needed soon are never dropped.

A file that finds no room, because the disk is full or because everything in the cache is in use, is read as
without a cache. So a cache that is too small makes a run slower, but never stops it.
"""

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, NamedTuple

import numpy as np

from bertdata.dataset.check import refuse_changed
from bertdata.dataset.reader import Shard, ShardFile
from bertdata.errors import SettingsError, ShardError, StorageError
from bertdata.examples.columns import Array
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.file_identity import identify_file
from bertdata.io.terminal import say_error
from trainer.data.cache.folder import (
    CachedFile,
    CacheFolder,
    DiskFull,
    Rank,
    find_free_bytes,
    is_in_use,
    raise_if_full,
)
from trainer.remote.retries import repeat

_ATTEMPTS = 2
"""Number of times that a file is fetched if it comes with a wrong md5."""
_BLOCK_BYTES = 1 << 20
LONGEST_WAIT_SECONDS = 300.0
"""Time after which a worker stops waiting for another one, which may have been suspended."""
_PAUSE_SECONDS = 0.02
"""Time between two looks for a file that another worker is fetching."""
FULL_DISK_SECONDS = 60.0
"""Time for which the cache does not grow after the disk was full. What filled it may be gone by then."""
_USED_SHARE = 0.95
"""Share of the free room of the disk that a cache without a configured size uses."""

# Files are dropped in this order. In each class, the one that was used longest ago goes first, except own
# files whose next need is known.
_UNUSED, _OWN, _OTHERS = 2, 1, 0
"""Files of a dataset that no run uses, files of this dataset, and files of other datasets that a run uses.

A run uses its training data and its evaluation data.
"""


class FetchingStopped(Exception):
    """The file is not needed any more, because the run ends."""


class Outlook(NamedTuple):
    """The next needs of a dataset's files, as seen from a place in the order of the examples.

    needs: for each file, the place at which it is needed next.
    near: for each file, whether it is needed now or soon.
    """

    needs: Array
    near: Array


class ShardCache:
    """The cache of a dataset's remote files. It opens copies for ``OpenedDataset``.

    root: the cache directory, which several datasets and runs may share.
    limit: bytes that all files of the cache directory may have together. None: most of the free disk.
    shards: the dataset's files. Local ones have no copies.
    """

    def __init__(self, root: str, limit: int | None, shards: Sequence[Shard]) -> None:
        self.files = [shard.file for shard in shards]
        """The file with the examples of each shard."""
        self.lengths = [shard.lengths_file for shard in shards]
        """The file with the lengths of each shard's examples. It is needed when the shard is."""
        self.names = name_copies([*self.files, *filter(None, self.lengths)])
        """The name of each remote file's copy, by the URL of the file."""
        listed = "\n".join(sorted(set(self.names.values())))
        self.folder = CacheFolder(root, hashlib.blake2b(listed.encode(), digest_size=16).hexdigest())
        self.room = find_free_bytes(root) + self.folder.count_bytes()
        """Bytes for which the disk has room, with the files that are in the cache directory already."""
        self.limit = math.floor(self.room * _USED_SHARE) if limit is None else limit
        """Bytes that all files of the cache directory may have together. For a while after the disk was full,
        they may have fewer.
        """
        self._full = (0.0, 0)
        """The time (monotonic, in seconds) until which the limit is lower, and the lower limit in bytes."""
        self.sizes = np.zeros(len(self.files), np.int64)
        """For each shard, the bytes of its remote files. 0 for a local shard."""
        self.fetched_files = self.fetched_bytes = 0
        self._numbers = dict[str, int]()
        for files in (self.files, self.lengths):
            for number, file in enumerate(files):
                if file is not None and file.path in self.names:
                    self._numbers[self.names[file.path]] = number
                    self.sizes[number] += file.bytes or 0
        self._outlook: Outlook | None = None
        self._began = time.time()
        self._sound = set[tuple[int, int, int]]()
        self._told = set[str]()

    def expect(self, outlook: "Outlook | None") -> None:
        """Take note of when the dataset's files are needed next, which decides what is dropped.

        outlook: the next need of each file. None: the needs are not known.
        """
        self._outlook = outlook

    @contextmanager
    def keep_all(self) -> Iterator[None]:
        """Keep the dataset's files in the cache until the end of the block, as far as there is room.

        This is for data that are read as a whole again and again, such as evaluation data. A run that fetches
        other data ahead drops none of these files, and these files do not drop each other, because each is
        needed as soon as any other. Those that find no room are read without the cache.

        Raises StorageError if the disk has no room for the mark of the run.
        """
        descriptor = self.folder.use()
        try:
            self.expect(Outlook(np.zeros(len(self.files), np.int64), np.ones(len(self.files), bool)))
            yield
        finally:
            self.expect(None)
            os.close(descriptor)

    @contextmanager
    def open_copy(self, file: ShardFile) -> Iterator[BinaryIO | None]:
        """Open the copy of a remote file, which is fetched first if no worker of this machine has fetched it.

        Gives None if the cache has no room for it.
        """
        descriptor = self.hold(file) if file.path in self.names else None
        if descriptor is None:
            yield None
            return
        os.lseek(descriptor, 0, os.SEEK_SET)
        with os.fdopen(descriptor, "rb") as copy:
            yield copy

    def hold(
        self, file: ShardFile, *, before: int | None = None, is_stopped: Callable[[], bool] = lambda: False
    ) -> int | None:
        """Return a descriptor of a file's copy, with a lock that keeps the copy in the cache.

        Returns None if there is no room for it, or if another worker takes too long to fetch it.
        before: place at which the file is needed, if it is fetched ahead. Then no file that is needed before
            that is dropped, and no file of another run. None: the file is needed now.
        is_stopped: function that says whether the run has ended. FetchingStopped is then raised.
        """
        name, start = self.names[file.path], time.monotonic()
        while True:
            try:
                with self.folder.locked():
                    descriptor = self.folder.open_whole(name)
                    if descriptor is None:
                        limit = self._find_limit()
                        begun = self.folder.begin(name, file.bytes or 0, limit, self._rank(before))
                if descriptor is not None:
                    if self._is_sound(file, descriptor):
                        return descriptor
                    self.folder.remove_damaged(name, descriptor)
                elif begun.is_busy:
                    # A file that is fetched ahead is another worker's concern.
                    if before is not None:
                        return None
                    if time.monotonic() - start > LONGEST_WAIT_SECONDS:
                        self._tell(
                            f"{file.path}: another worker has not fetched it in {LONGEST_WAIT_SECONDS:g} s; "
                            "reading it without the cache"
                        )
                        return None
                    time.sleep(_PAUSE_SECONDS)
                elif begun.descriptor is not None:
                    return self._fetch(file, begun.descriptor, is_stopped)
                else:
                    if before is None and limit == self.limit:
                        self._tell_small()
                    return None
            except DiskFull:
                if not self._limit_to_disk():
                    return None
            if is_stopped():
                raise FetchingStopped

    def _rank(self, before: int | None) -> Rank:
        """Return the function that says which files may be dropped, and which of them first.

        before: as in ``hold``.
        """
        in_use, outlook = dict[str, bool](), self._outlook

        def rank(file: CachedFile) -> tuple[int, float] | None:
            if file.directory != self.folder.directory:
                if file.directory not in in_use:
                    in_use[file.directory] = is_in_use(file.directory)
                if not in_use[file.directory]:
                    return _UNUSED, -file.used
                return (_OTHERS, -file.used) if before is None else None
            if outlook is None:
                return _OWN, -file.used
            number = self._numbers.get(file.name)
            if number is None:
                return _OWN, math.inf
            need = int(outlook.needs[number])
            is_sooner = outlook.near[number] if before is None else need <= before
            return None if is_sooner else (_OWN, need)

        return rank

    def _fetch(self, file: ShardFile, descriptor: int, is_stopped: Callable[[], bool]) -> int:
        """Download a file into the cache. Return its descriptor, with a lock that keeps the copy.

        ShardError if the md5 is wrong again after a second download. StorageError if the store does not
        answer.
        """
        name = self.names[file.path]
        try:
            for left in reversed(range(_ATTEMPTS)):
                found, size = repeat(partial(self._download, file, descriptor, is_stopped))
                if (file.md5 or found, file.bytes) == (found, size):
                    break
                if not left:
                    refuse_changed(file.path, found, file.md5)
                    raise ShardError(f"{file.path}: found {size} bytes, expected {file.bytes}")
            os.ftruncate(descriptor, size)  # an attempt that failed may have been longer
            self.folder.finish(name, descriptor)
        except OSError as error:
            self.folder.abandon(name, descriptor)
            raise StorageError(f"{self.folder.root}: {error.strerror or error}") from error
        except BaseException:
            self.folder.abandon(name, descriptor)
            raise
        self.fetched_files += 1
        self.fetched_bytes += size
        self._sound.add(_identify(descriptor))
        return descriptor

    @staticmethod
    def _download(file: ShardFile, descriptor: int, is_stopped: Callable[[], bool]) -> tuple[str, int]:
        """Copy a remote file into an open local file. Return its md5 and the number of its bytes."""
        md5, size = hashlib.md5(usedforsecurity=False), 0
        with storage.open_input(file.path) as source:
            while block := source.read(_BLOCK_BYTES):
                md5.update(block)
                try:
                    written = 0
                    while written < len(block):
                        written += os.pwrite(descriptor, block[written:], size + written)
                except OSError as error:
                    raise_if_full(error)
                    raise
                size += len(block)
                if is_stopped():
                    raise FetchingStopped
        return md5.hexdigest(), size

    def _is_sound(self, file: ShardFile, descriptor: int) -> bool:
        """Return True if a copy is what was fetched.

        Its md5 was checked when it came. A copy that an earlier run has left is read once more, because its
        bytes may have changed since. A copy that the disk does not give back is not sound.
        """
        found, identity = os.fstat(descriptor), _identify(descriptor)
        if found.st_size != file.bytes:
            return False
        # Not the time of the last change (st_ctime): ``open_whole`` has just changed it, with the time of the
        # last access.
        if identity not in self._sound and found.st_mtime < self._began:
            md5 = hashlib.md5(usedforsecurity=False)
            place = 0
            try:
                while block := os.pread(descriptor, _BLOCK_BYTES, place):
                    md5.update(block)
                    place += len(block)
            except OSError:
                return False
            if file.md5 not in (None, md5.hexdigest()):
                return False
        self._sound.add(identity)
        return True

    def _find_limit(self) -> int:
        """Return the bytes that all files of the cache directory may have together now."""
        until, size = self._full
        return min(self.limit, size) if time.monotonic() < until else self.limit

    def _limit_to_disk(self) -> bool:
        """Limit the cache for a while to what it has now, because the disk is full. Return False if it was so
        before.

        After True, other files may be dropped for the one that found no room.
        """
        self._tell(
            f"{self.folder.root}: the disk is full; for now the cache keeps what it has, and files that find "
            "no room are read without it"
        )
        size = self.folder.count_bytes()
        is_smaller = size < self._find_limit()
        self._full = (time.monotonic() + FULL_DISK_SECONDS, size)
        return is_smaller

    def _tell_small(self) -> None:
        """Warn that a file is read without the cache, because it found no room."""
        self._tell(
            f"{self.folder.root}: the cache of {format_bytes(self.limit)} has no room beside the files in "
            "use; files that find no room are read without it; give more --cache-size"
        )

    def _tell(self, warning: str) -> None:
        """Print a warning, once."""
        if warning not in self._told:
            self._told.add(warning)
            say_error(f"trainer: warning: {warning}")


def _identify(descriptor: int) -> tuple[int, int, int]:
    """Return numbers by which a file is recognised until it is written to."""
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_mtime_ns


def name_copies(files: Sequence[ShardFile]) -> dict[str, str]:
    """Return the name of each remote file's copy, by the URL of the file.

    The name ends with the md5 in the manifest. Without a manifest, it ends with a digest of the URL and of
    what the store says about the version of the file.
    """
    remote = [file for file in files if storage.is_remote(file.path)]
    unlisted = [file.path for file in remote if file.md5 is None]
    digests = dict(zip(unlisted, storage.map_paths(unlisted, _digest_version), strict=True))
    return {
        file.path: f"{storage.get_base_name(file.path)}.{file.md5 or digests[file.path]}" for file in remote
    }


def _digest_version(path: str) -> str:
    """Return a digest of the URL of a remote file, and of its size and version."""
    state = identify_file(path).state
    if not state.written:
        raise SettingsError(
            f"{path}: no manifest lists it, and its store says no version, so a copy may be out of date; "
            "leave out --cache-dir"
        )
    return compute_md5(f"{path} {state.bytes} {state.written}".encode())


def format_bytes(count: float) -> str:
    """Return a number of bytes in words, for example ``1.5 GB``."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:.0f} bytes"
