"""Uploading a run's working directory to its URL, in the background and while the training goes on.

One thread does everything, one checkpoint after the other:

1. It looks for a new checkpoint in the working directory. There it appears whole, by a rename.
2. It makes hard links to its files, so that the training may remove the checkpoint in the meantime.
3. It uploads the files, then the logs, and last ``state.json``, with which the checkpoint counts.
4. It removes the oldest checkpoints of this phase from the store, except the one of the best evaluation.

If uploads are slower than the training, the newest checkpoint is uploaded first, and those that the training
has removed by then are left out. What fails is tried again, and files that have been uploaded are not sent
again.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from bertdata.errors import BertDataError, StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.json_text import parse_json_text
from trainer.errors import CheckpointError
from trainer.remote.folders import find_upload_note
from trainer.remote.retries import is_refused, repeat
from trainer.remote.stored_run import (
    CHECKPOINTS,
    STATE,
    StoredRun,
    find_best_number,
    name_checkpoint,
    remove_checkpoint,
)

LINKS = "uploading"
"""Folder of the working directory with hard links to the files of the checkpoint that is being uploaded."""
NOT_LOGS = (CHECKPOINTS, UNFINISHED, LINKS, "features")
"""Folders of a run's directory that are not uploaded with the logs. Features are made again from the files of
the task.
"""
LOOK_SECONDS = 0.5
"""Seconds between two looks for a new checkpoint."""
REST_SECONDS = 30.0
"""Seconds after an upload has failed, all attempts included, until it is tried again."""
LAST_ROUNDS = 5
"""Number of times that the uploads left at the end of a run are tried, each with all attempts and with
REST_SECONDS between them, until they count as failed.
"""


class LogFiles:
    """The logs and other small files of a working directory, and which of them the store has already.

    are_stored: True if the files that are there now have come from the store.
    """

    def __init__(self, folder: Path, url: str, *, are_stored: bool = True) -> None:
        self._folder, self._url = folder, url
        self._sent = self._list_versions() if are_stored else {}

    def upload_changed(self) -> None:
        """Upload the files that have changed since the last call. StorageError if one cannot be uploaded."""
        for name, version in self._list_versions().items():
            if self._sent.get(name) != version:
                repeat(partial(self._upload, name))
                self._sent[name] = version

    def list_changed(self) -> list[str]:
        """Return the names of the files that have changed and are not in the store."""
        return [name for name, version in self._list_versions().items() if self._sent.get(name) != version]

    def _upload(self, name: str) -> None:
        """Upload a copy of a file as it is now, because a log may grow during the upload."""
        with (
            suppress(FileNotFoundError),
            (self._folder / name).open("rb") as file,
            storage.open_output(storage.join(self._url, name)) as output,
        ):
            shutil.copyfileobj(file, output)

    def _list_versions(self) -> dict[str, tuple[int, int]]:
        """Return size and time of each log file, by its name relative to the working directory."""
        found = {}
        for top in sorted(self._folder.iterdir()) if self._folder.is_dir() else []:
            if top.name in NOT_LOGS:
                continue
            for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                with suppress(OSError):
                    if path.is_file() and not storage.is_growing_name(path.name):
                        status = path.stat()
                        name = str(path.relative_to(self._folder))
                        found[name] = (status.st_size, status.st_mtime_ns)
        return found


class Uploader:
    """Uploader of checkpoints and logs of a run from its working directory, in a thread.

    folder: the working directory.
    url: directory of the run in the store.
    keep: number of checkpoints of a phase that are kept in the store.
    log: function that prints a line.
    may_write: function that returns False if another run writes to the store now.
    has_logs: True if the logs in the working directory have come from the store.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        keep: int,
        log: Callable[[str], None],
        *,
        may_write: Callable[[], bool] = lambda: True,
        has_logs: bool = True,
    ) -> None:
        self._folder, self._url, self._keep, self._log = folder, url, keep, log
        self._may_write = may_write
        self._logs = LogFiles(folder, url, are_stored=has_logs)
        # number of each checkpoint that the store has, with the bytes of its state.json
        self._stored: dict[int, bytes] = {}
        # files sent of checkpoints that are not whole yet, each as the content of state.json and its name
        self._sent: set[tuple[bytes, str]] = set()
        self._ends = threading.Event()
        self._ends_at_once = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def note_stored(self, number: int, state: bytes) -> None:
        """Note that the store has a checkpoint already.

        number: number of the checkpoint.
        state: content of its state.json.
        """
        self._stored[number] = state

    def begin(self, later_than: int | None) -> None:
        """Begin to upload. It is called after all checks of the run, right before its first update.

        Checkpoints in the store after ``later_than`` are removed, as in a local directory.
        later_than: number of the checkpoint that the run continues from. None removes nothing.
        """
        if later_than is not None:
            for number, checkpoint in StoredRun.read(self._url).checkpoints.items():
                if number > later_than:
                    remove_checkpoint(checkpoint)
                    self._stored.pop(number, None)
        if not self._thread.is_alive():
            self._thread.start()

    @property
    def has_begun(self) -> bool:
        return self._thread.ident is not None

    def stop_at_once(self) -> None:
        """End without another upload, because another run writes to the store now, or soon may."""
        self._ends_at_once.set()
        self._ends.set()

    def end(self) -> None:
        """Ask the thread to upload what is left and then to end. Does not wait."""
        self._ends.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the thread has ended, at most so many seconds. Return True if it has ended."""
        if self.has_begun:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def list_missing(self) -> list[str]:
        """Return what the store lacks, in words: the newest checkpoint, logs. [] if nothing is missing."""
        if not self.has_begun:
            return []
        missing = [f"checkpoint {number}" for number in self._list_due()]
        return missing + (["logs"] if self._logs.list_changed() else [])

    @property
    def failure(self) -> Exception | None:
        """The error of the last upload, or None if it succeeded."""
        return self._failure

    def _run(self) -> None:
        """Upload until the end of the run. This runs in a thread."""
        while not self._ends.wait(LOOK_SECONDS):
            if not self._upload_new():
                self._ends.wait(REST_SECONDS)
        for left in reversed(range(LAST_ROUNDS)):
            if self._ends_at_once.is_set() or self._upload_new(is_last=True):
                break
            if self._failure is not None and is_refused(self._failure):
                break
            if left:
                self._ends_at_once.wait(REST_SECONDS)
        shutil.rmtree(self._folder / LINKS, ignore_errors=True)

    def _upload_new(self, *, is_last: bool = False) -> bool:
        """Upload new checkpoints, and with the last of them the logs. Return False if that has failed.

        is_last: upload the logs without a new checkpoint too.
        """
        try:
            # The newest first: it is the one that counts if this machine is taken away.
            while not self._ends_at_once.is_set() and (due := self._list_due()):
                self._upload_checkpoint(due[0])
            if is_last and not self._ends_at_once.is_set():
                self._logs.upload_changed()
        except Exception as error:  # any error: without this thread, nothing more would be uploaded for days
            if str(error) != str(self._failure):
                goes_on = "" if self._ends.is_set() else "training goes on, and "
                known = isinstance(error, (BertDataError, OSError))
                what = error if known else f"{self._url}: {type(error).__name__}: {error}"
                self._log(f"warning: {what}; {goes_on}the upload is tried again")
            self._failure = error
            return False
        self._failure = None
        return True

    def _list_due(self) -> list[int]:
        """Return the numbers of the checkpoints that the store lacks, the newest first.

        These are the newest ``keep`` of the phase, the one of its best evaluation, and the last one of an
        earlier phase. The list is empty if there are none in the working directory.
        """
        states = self._read_states()
        if not states:
            return []
        newest = max(states)
        state = parse_json_text(states[newest])
        start = int(state.get("phase_start", 0))
        of_phase = sorted((number for number in states if number > start), reverse=True)
        best = find_best_number(state)
        wanted = dict.fromkeys([*of_phase[:1], best, *of_phase[: self._keep], start])
        return [
            number for number in wanted if number in states and self._stored.get(number) != states[number]
        ]

    def _read_states(self) -> dict[int, bytes]:
        """Return the content of state.json of each checkpoint in the working directory, by number."""
        found = {}
        for path in (self._folder / CHECKPOINTS).glob(f"step-*/{STATE}"):
            with suppress(OSError):  # it has just been removed
                if path.parent.name[5:].isdecimal():
                    found[int(path.parent.name[5:])] = path.read_bytes()
        return found

    def _upload_checkpoint(self, number: int) -> None:
        """Upload one checkpoint with the logs, then remove old ones from the store."""
        begun, links = time.monotonic(), self._link(number)
        if links is None:
            return
        state = (links / STATE).read_bytes()
        url = storage.join(self._url, f"{CHECKPOINTS}/{name_checkpoint(number)}")
        uploaded = self._list_uploaded(number, state)
        files = sorted(path for path in links.rglob("*") if path.is_file() and path.name != STATE)
        for path in files:
            name = str(path.relative_to(links))
            if self._ends_at_once.is_set():
                return
            if name not in uploaded:
                repeat(partial(storage.upload_copy, str(path), storage.join(url, name)))
                self._sent.add((state, name))
        self._logs.upload_changed()
        # This run may have been cut off from the store for so long that another run has begun to write there.
        if self._ends_at_once.is_set() or not self._may_write():
            return
        repeat(partial(storage.upload_copy, str(links / STATE), storage.join(url, STATE)))
        self._stored[number] = state
        if number == max(self._stored):
            find_upload_note(self._folder).write_bytes(state)
        self._sent = {sent for sent in self._sent if sent[0] != state}
        size = sum(path.stat().st_size for path in (*files, links / STATE))
        shutil.rmtree(links, ignore_errors=True)
        seconds = time.monotonic() - begun
        self._log(f"checkpoint {number} is in {self._url}: {size / 1e6:,.1f} MB in {seconds:.1f} s")
        self._remove_old()

    def _list_uploaded(self, number: int, state: bytes) -> Collection[str]:
        """Return the names of a checkpoint's files that the store has already.

        A checkpoint with other files that has the same number in the store is removed from there.
        state: content of the checkpoint's state.json.
        """
        there = StoredRun.read(self._url).checkpoints.get(number)
        if there is None:
            return ()
        if STATE not in there.names:
            # Only what this thread has sent, and what is still there: _remove_old may have removed it.
            return {name for name in there.names if (state, name) in self._sent}
        # If the state alone differs (the run was evaluated once more), only state.json is replaced, in one
        # step. The checkpoint may be the only one in the store, so there must be no moment without it.
        with suppress(CheckpointError):
            if there.read_state()["files"] == parse_json_text(state)["files"]:
                return there.names
        remove_checkpoint(there)
        return ()

    def _link(self, number: int) -> Path | None:
        """Make hard links to a checkpoint's files, and return their folder. None if it has been removed."""
        source = self._folder / CHECKPOINTS / name_checkpoint(number)
        links = self._folder / LINKS / source.name
        growing = links.with_name("growing")
        try:
            if links.is_dir() and (links / STATE).read_bytes() == (source / STATE).read_bytes():
                return links
            # Links to another checkpoint, whose upload has failed, would keep its files on the disk.
            shutil.rmtree(self._folder / LINKS, ignore_errors=True)
            shutil.copytree(source, growing, copy_function=_link_or_copy)
            growing.rename(links)
        except (OSError, shutil.Error) as error:
            if not source.is_dir():
                return None
            raise StorageError(f"{links}: {error}") from None
        return links

    def _remove_old(self) -> None:
        """Remove checkpoints of the phase from the store until ``keep`` are left, and what is half there.

        The checkpoint of the best evaluation stays. A failure is only a warning: the checkpoint that was just
        uploaded counts.
        """
        # The newest checkpoint says which phase and which best evaluation count. The one that was just
        # uploaded may be older, even of an earlier phase.
        newest = max(self._stored)
        state = parse_json_text(self._stored[newest])
        phase_start, best = int(state.get("phase_start", 0)), find_best_number(state)
        try:
            there = StoredRun.read(self._url).checkpoints
            of_phase = [one for one in there.values() if phase_start < one.number <= newest]
            half = [one for one in of_phase if STATE not in one.names]
            whole = [one for one in of_phase if STATE in one.names]
            old = [one for one in whole[: -self._keep] if one.number != best]
            for checkpoint in (*half, *old):
                remove_checkpoint(checkpoint)
                self._stored.pop(checkpoint.number, None)
        except BertDataError as error:
            self._log(f"warning: old checkpoints are not removed: {error}")


def _link_or_copy(source: str, target: str) -> None:
    """Make a hard link to a file, or a copy on a file system without hard links."""
    try:
        os.link(source, target)
    except FileNotFoundError:  # the checkpoint is being removed
        raise
    except OSError:
        shutil.copyfile(source, target)
