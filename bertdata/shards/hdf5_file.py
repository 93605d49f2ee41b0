"""Write HDF5 files. Each file is built in a temporary file, and then copied to its destination."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from bertdata.errors import MissingExtraError, StorageError, install_extra
from bertdata.io.signals import delay_signals
from bertdata.shards.protocol import Sink

COPY_BYTES = 1024 * 1024
# The oldest possible file format, so that every HDF5 release can read the files.
LIBRARY_VERSIONS = ("earliest", "v110")

H5PY_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, MemoryError)
"""The exceptions that h5py raises for damaged files. It has no exception class of its own for them."""


class ScratchHdf5:
    """An HDF5 file that is built in a temporary file and then copied to a sink.

    The temporary file is needed because HDF5 has to seek, and a sink (destination of bytes) cannot seek.

    file: the h5py.File. Use it only while signals are delayed (``delay_signals``), because an exception from
        a signal handler crashes the process if the HDF5 library is running.
    """

    def __init__(self, sink: Sink) -> None:
        h5py = load_h5py()
        self._sink = sink
        self._scratch = ScratchFile()
        with delay_signals():
            self.file: Any = h5py.File(self._scratch, "w", libver=LIBRARY_VERSIONS)
            self._release = weakref.finalize(self, _close_both, self.file, self._scratch)

    def check(self) -> None:
        """Raise StorageError if a write to the temporary file failed."""
        self._scratch.check()

    def finish(self) -> None:
        """Close the file and copy it to the sink."""
        with delay_signals():
            self.file.close()
        self.check()
        self._scratch.seek(0)
        shutil.copyfileobj(self._scratch, self._sink, COPY_BYTES)
        self._release()


class ScratchFile:
    """A temporary file whose writes never raise. ``check`` raises the first failure later.

    If a write raises inside the HDF5 library, the process crashes, at the latest when it exits. After a
    failure all further writes are therefore skipped. Signal handlers may raise too, so callers delay signals
    while HDF5 works.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by _close_both
        self._failure: OSError | None = None

    def write(self, data: Any) -> int:
        view, place = memoryview(data), 0
        with self._note_failure():
            while place < view.nbytes and self._failure is None:
                place += self._file.write(view[place:])
        return view.nbytes

    def truncate(self, size: int) -> int:
        with self._note_failure():
            if self._failure is None:
                self._file.truncate(size)
        return size

    @contextmanager
    def _note_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failure = error

    def check(self) -> None:
        """Raise StorageError for the first failed write, if any."""
        if self._failure is not None:
            raise StorageError(
                f"{tempfile.gettempdir()}: {self._failure.strerror}: an HDF5 shard is put together here; "
                "make room, or name another directory in TMPDIR"
            ) from self._failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _close_both(file: Any, scratch: ScratchFile) -> None:
    """Close the HDF5 file and its temporary file.

    This also runs when a writer is garbage-collected without ``close`` after an error.
    """
    with delay_signals():
        file.close()
        scratch.close()


def load_h5py() -> Any:
    """Import and return the package h5py. Raises MissingExtraError if it is not installed."""
    try:
        return import_module("h5py")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"container hdf5 needs the package {error.name}: {install_extra('hdf5')}"
        ) from error


def format_on_one_line(error: Exception) -> str:
    """Return the error's message on a single line."""
    return " ".join(str(error).split())
