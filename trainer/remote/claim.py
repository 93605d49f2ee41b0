"""The claim of a run on its directory at a URL, so that no second run writes there at the same time.

A file system's lock ends with its process, but an object store has no locks. So a run writes a small file,
``unfinished/run.lock``, and writes it again every few seconds. A claim that is no longer renewed belongs to a
run that was killed, and the next run takes it over. The file is created by a conditional write where the
store has them: of two runs that start at the same moment, only one then gets the claim.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bertdata.errors import BertDataError, DatasetError, MissingInputError, StorageError
from bertdata.io import storage
from bertdata.io.directory_lock import LOCK_NAME, name_this_process
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.json_text import parse_json_text
from trainer.remote.retries import repeat

RENEW_SECONDS = 10.0
"""Seconds between two renewals of a claim."""
STALE_SECONDS = 60.0
"""Age from which on a claim that is not renewed counts as left by a killed run."""
_LOOK_SECONDS = 1.0
"""Seconds between two looks at a claim of another run, to see whether it is renewed."""
_RENEWAL_ATTEMPTS = 2
"""How often each request of a renewal is made. The next renewal follows soon anyway."""

_held: set[object] = set()
"""Tokens of the claims that this process holds."""


class Claim:
    """This run's claim on a directory at a URL. Renewed by a thread until ``release``.

    url: the directory.
    on_lost: function to call if another run has taken the claim over.
    """

    def __init__(self, url: str, log: Callable[[str], None], on_lost: Callable[[], None]) -> None:
        self._path = storage.join(url, f"{UNFINISHED}/{LOCK_NAME}")
        self._url, self._log, self._on_lost = url, log, on_lost
        self._token = os.urandom(8).hex()
        self._renewals = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self.is_lost = False

    def take(self) -> None:
        """Write the claim. DatasetError if another run has one, StorageError if this run may not write here.

        Waits up to STALE_SECONDS if another run's claim is there, until it is renewed or counts as stale.
        """
        # A file of its own is written first. It shows whether this run may write, and its time by the store's
        # clock tells how old another run's claim is, whatever the clock of this machine says.
        probe = f"{self._path}.{self._token}"
        try:
            repeat(lambda: _write(probe, self._format()))
        except (StorageError, MissingInputError) as error:
            raise type(error)(str(error).replace(probe, self._url)) from None
        try:
            if (found := self._read()) is not None:
                self._wait_until_stale(found, probe)
                # Another run may have waited too, and have taken the claim over a moment ago.
                if self._read() == found:
                    repeat(lambda: storage.remove(self._path, missing_ok=True))
        finally:
            with suppress(BertDataError):
                repeat(lambda: storage.remove(probe, missing_ok=True))
        is_created = repeat(lambda: storage.create_remote_file(self._path, self._format()))
        if is_created is None:
            self._log(
                f"{self._url}: this store has no conditional writes, so two runs that start here within a "
                "second of each other are not told apart"
            )
            repeat(lambda: _write(self._path, self._format()))
        # A repeated request may find the file that its first attempt has written.
        if (found := self._read()) is None or self._parse(found).get("token") != self._token:
            raise self._make_error(found)
        _held.add(self._token)
        self._thread.start()

    def release(self) -> None:
        """End the renewals and remove the claim, unless another run has taken it over."""
        self._ends.set()
        self._thread.join()
        _held.discard(self._token)
        with suppress(BertDataError):
            found = self._read()
            if found is not None and self._parse(found).get("token") == self._token:
                repeat(lambda: storage.remove(self._path, missing_ok=True))

    def check(self) -> bool:
        """Return True unless another run has taken the claim over. Then call ``on_lost`` and return False."""
        # Few attempts, so that a store that fails now and then delays no renewal by half a minute.
        found = self._read(attempts=_RENEWAL_ATTEMPTS)
        if found is not None and self._parse(found).get("token") != self._token:
            self.is_lost = True
            self._on_lost()
        return not self.is_lost

    def _renew(self) -> None:
        """Write the claim again and again, until it is released or lost. This runs in a thread."""
        while not self._ends.wait(RENEW_SECONDS):
            with suppress(BertDataError):  # the store may be away for a while
                if not self.check():
                    return
                self._renewals += 1
                repeat(lambda: _write(self._path, self._format()), attempts=_RENEWAL_ATTEMPTS)

    def _wait_until_stale(self, found: bytes, probe: str) -> None:
        """Return once the claim of another run counts as left by a killed run. DatasetError if it is renewed.

        found: content of the other run's claim.
        probe: path of a file that was written just now.
        """
        owner = self._parse(found)
        if _is_dead_here(owner):
            return
        age = self._find_age(probe)
        if age >= STALE_SECONDS:
            return
        self._log(
            f"{self._url}: {_describe(owner)} wrote here {age:.0f} s ago; waiting up to "
            f"{STALE_SECONDS - age:.0f} s, to see whether it still runs"
        )
        until = time.monotonic() + STALE_SECONDS - age
        while time.monotonic() < until:
            time.sleep(min(_LOOK_SECONDS, STALE_SECONDS / 4))
            now = self._read()
            if now is None:  # the other run has just ended
                return
            if now != found:
                raise self._make_error(now)

    def _find_age(self, probe: str) -> float:
        """Return the seconds since the claim at the path was written, by the store's clock. 0 if unknown."""
        with suppress(MissingInputError, StorageError):
            written, now = storage.read_modified_time(self._path), storage.read_modified_time(probe)
            if written is not None and now is not None:
                return max(0.0, now - written)
        return 0.0

    def _read(self, *, attempts: int | None = None) -> bytes | None:
        """Return the content of the claim at the path, or None if there is none."""
        try:
            return repeat(lambda: storage.read_bytes(self._path), attempts=attempts)
        except MissingInputError:
            return None

    def _format(self) -> bytes:
        """Return the content of this run's claim."""
        values = {
            "owner": name_this_process(),
            "machine": _name_machine(),
            "pid": str(os.getpid()),
            "token": self._token,
            "renewals": self._renewals,
        }
        return f"{json.dumps(values)}\n".encode()

    @staticmethod
    def _parse(found: bytes) -> dict[str, object]:
        """Return the values of a claim, or {} if the file is no claim."""
        with suppress(ValueError):
            values = parse_json_text(found)
            if isinstance(values, dict):
                return values
        return {}

    def _make_error(self, found: bytes | None) -> DatasetError:
        """Return the error for a directory that another run is writing to."""
        owner = _describe(self._parse(found or b""))
        return DatasetError(
            f"{self._url}: another run ({owner}) is writing here; wait for its end, or choose another "
            "--output-dir"
        )


def _write(path: str, data: bytes) -> None:
    """Write a small file."""
    with storage.open_output(path) as file:
        file.write(data)


def _describe(owner: dict[str, object]) -> str:
    """Return the name of the process that holds a claim."""
    return str(owner.get("owner", "process unknown"))


def _is_dead_here(owner: dict[str, object]) -> bool:
    """Return True if the claim's process ran under this machine's kernel, and has ended."""
    number = str(owner.get("pid", ""))
    if not number.isdecimal() or not _name_machine() or owner.get("machine") != _name_machine():
        return False
    if int(number) == os.getpid():  # another run of this process, which may have ended long ago
        return owner.get("token") not in _held
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _name_machine() -> str:
    """Return a name of this start of this machine's kernel and of the process ids' namespace, "" if unknown.

    Within it, a process id means one process.
    """
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{kernel}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
