"""A run whose directory is a URL, as one worker sees it: the local directory that stands for it, and on
rank 0 the claim and the uploads.
"""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from bertdata.errors import StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.terminal import say_error
from trainer.errors import CheckpointError, WorkerLost
from trainer.remote.claim import Claim
from trainer.remote.folders import find_working_folder
from trainer.remote.retries import repeat
from trainer.remote.stored_run import (
    CHECKPOINTS,
    STATE,
    StoredCheckpoint,
    StoredRun,
    download_checkpoint,
    download_file,
    holds_copy,
    name_checkpoint,
    remove_checkpoint,
)
from trainer.remote.uploader import LINKS, NOT_LOGS, LogFiles, Uploader

NOTICE_SECONDS = 25.0
"""Seconds after a request to stop at which a line says what is not uploaded yet. Schedulers and providers
usually kill a process 30 s after the request.
"""
_LOST_SECONDS = 3.0
"""Seconds for uploads after a worker was lost. The launcher will soon end this process too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteRun:
    """Places of a run's files in the store and on this machine.

    names: URL of each local directory that stands for a URL, for messages.
    recorded: further keys of the configuration as the user gave them, which were changed for this machine.
    uploads: the uploads, on rank 0 of a run that trains. None elsewhere.
    results: the result files to upload, on rank 0 of an evaluation. None elsewhere.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    uploads: "Uploads | None" = None
    results: LogFiles | None = None

    def name_urls(self, text: str) -> str:
        """Return the text with URLs in place of the local directories that stand for them."""
        for folder, url in self.names.items():
            text = text.replace(folder, url)
        return text

    def name_urls_of_keys(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration's keys as the user gave them, with URLs."""
        given = {key: self.names.get(value, value) for key, value in keys.items() if isinstance(value, str)}
        return {**keys, **given, **self.recorded}


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation:
    """Checkpoint that a run which trains needs of the run at its URL.

    continues: False for a new run, which needs no checkpoint.
    number: number of the checkpoint to continue from. None: the newest that is whole.
    """

    continues: bool
    number: int | None = None


class Uploads(AbstractContextManager["Uploads"]):
    """The claim on a URL, and the uploads of the working directory to it. Only rank 0 has it.

    The end of the block uploads what is left, and removes the claim. If something cannot be uploaded, it
    raises StorageError with what is missing, or prints this if the block has failed already.
    url: directory of the run in the store.
    keep: number of checkpoints of a phase that are kept in the store.
    log: function that prints a line.
    on_lost: function to call if another run has taken the claim over, so that this run must end.
    asked_to_stop: function that returns when a signal has asked the run to stop, by the monotonic clock, or
    None.
    """

    def __init__(
        self,
        url: str,
        keep: int,
        *,
        log: Callable[[str], None],
        on_lost: Callable[[], None],
        asked_to_stop: Callable[[], float | None],
    ) -> None:
        self._url, self._log, self._on_lost = url.rstrip("/"), log, on_lost
        self._asked_to_stop = asked_to_stop
        self._keep = keep
        self._folder = find_working_folder(url)
        self._claim = Claim(self._url, log, self._lose)
        self._uploader: Uploader | None = None

    def __enter__(self) -> "Uploads":
        self._claim.take()
        return self

    def bring(self, wanted: Continuation) -> None:
        """Make the working directory equal to the run in the store, as far as this run needs it.

        It then has the logs and, for a continued run, the checkpoint to continue from. What another run left
        in the working directory is removed.
        """
        run = StoredRun.read(self._url)
        uploaded = dict[int, bytes]()
        newer = set[int]()
        if wanted.continues and (newest := _choose_checkpoint(run, wanted.number, self._log)) is not None:
            is_new_copy = not _has_copy(newest, self._folder)
            uploaded = _download(run, newest, self._folder)
            # This machine has trained on after its last upload, if it has that upload and later checkpoints.
            if not is_new_copy and wanted.number is None:
                newer = {number for number in list_numbers(self._folder) if number > newest.number}
        _clear_folder(self._folder, {*uploaded, *newer}, keeps_logs=bool(newer))
        if newer:
            self._log(f"checkpoint {max(newer)} was not uploaded, but is still on this machine")
        else:
            download_logs(run, self._folder)
        self._uploader = Uploader(self._folder, self._url, self._keep, self._log, has_logs=not newer)
        for number, state in uploaded.items():
            self._uploader.note_stored(number, state)

    def remove_earlier_run(self) -> None:
        """Remove the checkpoints of an earlier run from the store, which this run is to overwrite."""
        for checkpoint in StoredRun.read(self._url).checkpoints.values():
            remove_checkpoint(checkpoint)

    def begin(self, later_than: int | None) -> None:
        """Begin to upload, just before the first update of a phase.

        later_than: number of the checkpoint that the run continues from. Later ones are removed from the
        store. None removes none.
        """
        assert self._uploader is not None
        self._uploader.begin(later_than)

    def _lose(self) -> None:
        """End uploads and run, because another run has taken over the claim."""
        if self._uploader is not None:
            self._uploader.stop_at_once()
        self._on_lost()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Upload what is left and remove the claim. After a second Ctrl-C, do not wait for uploads."""
        failure = None
        if self._uploader is not None and self._uploader.has_begun:
            limit = None
            if isinstance(error, KeyboardInterrupt):
                limit = 0.0
            elif isinstance(error, WorkerLost):
                limit = _LOST_SECONDS
            self._finish(self._uploader, limit)
            failure = self._describe_failure(self._uploader)
        if self._claim.is_lost:
            failure = (
                f"{self._url}: another run has begun to write here, because this one did not answer for "
                "a while; this run ends, and its last updates are lost"
            )
        else:
            self._claim.release()
        if failure is not None and error is None:
            raise StorageError(failure)
        if failure is not None:
            say_error(f"trainer: error: {failure}")

    def _finish(self, uploader: Uploader, limit: float | None) -> None:
        """Wait until the uploads have ended. Say what is missing if that takes long after a request to stop.

        limit: longest time to wait, in seconds. None waits without a limit.
        """
        begun = time.monotonic()
        uploader.end()
        if limit != 0.0 and (missing := uploader.list_missing()):
            self._log(f"uploading {' and '.join(missing)} to {self._url}")
        is_said = False
        with _noting_signals() as signals:
            while not uploader.wait(0.0 if limit == 0.0 else 0.1):
                now = time.monotonic()
                if limit is not None and now - begun >= limit:
                    return
                asked = self._asked_to_stop() or next(iter(signals), None)
                if not is_said and asked is not None and now - asked >= NOTICE_SECONDS:
                    is_said = True
                    missing = uploader.list_missing()
                    self._log(
                        f"warning: {' and '.join(missing)}: not in {self._url} yet, {now - asked:.0f} s "
                        f"after the request to stop; still uploading from {self._folder.parent}"
                    )

    def _describe_failure(self, uploader: Uploader) -> str | None:
        """Return an error message that says what is missing in the store, or None if nothing is missing."""
        missing = uploader.list_missing()
        if not missing:
            return None
        reason = f" ({uploader.failure})" if uploader.failure else ""
        remedy = f"still in the directory work of {self._folder.parent}; --resume-from it continues elsewhere"
        if uploader.has_copy_of_newest():
            remedy = f"still in {self._folder.parent}, from where --resume on this machine continues"
        return f"{self._url}: not uploaded: {' and '.join(missing)}{reason}; {remedy}"


def is_log(name: str) -> bool:
    """Return True for a file of a run that is neither part of a checkpoint nor temporary.

    name: its name relative to the run's directory.
    """
    return name.partition("/")[0] not in NOT_LOGS and not storage.is_growing_name(name)


def download_logs(run: StoredRun, folder: Path) -> None:
    """Download all logs and other small files of a run into a local directory."""
    for name in filter(is_log, run.others):
        download_file(storage.join(run.url, name), folder / name)


def list_numbers(folder: Path) -> list[int]:
    """Return the numbers of the checkpoints in a run's local directory, in ascending order."""
    names = [path.name[5:] for path in (folder / CHECKPOINTS).glob("step-*")]
    return sorted(int(name) for name in names if name.isdecimal())


def _choose_checkpoint(
    run: StoredRun, number: int | None, log: Callable[[str], None]
) -> StoredCheckpoint | None:
    """Return the checkpoint to continue from, or None if the run has none that is whole.

    number: number of the checkpoint. None: the newest that is whole. Those passed over are logged.
    """
    if number is not None:
        checkpoint = run.get_checkpoint(number)
        checkpoint.check_is_whole()
        return checkpoint
    passed_over = list[str]()
    newest = run.choose_newest_whole(passed_over)
    for fault in passed_over:
        log(f"warning: {fault}; it is passed over")
    return newest


def _download(run: StoredRun, newest: StoredCheckpoint, folder: Path) -> dict[int, bytes]:
    """Download a checkpoint and, if it belongs to phase 2, the end of phase 1.

    Returns the contents of their state.json by number.
    """
    chosen = [newest]
    start = run.checkpoints.get(int(newest.read_state().get("phase_start", 0)))
    with suppress(CheckpointError):  # the end of phase 1 is only looked at, so it may be missing
        if start is not None:
            start.check_is_whole()
            chosen.append(start)
    paths = {one.number: download_checkpoint(one, folder) for one in chosen}
    return {number: (path / STATE).read_bytes() for number, path in paths.items()}


def _has_copy(checkpoint: StoredCheckpoint, folder: Path) -> bool:
    """Return True if the local directory has a copy of the checkpoint."""
    state = repeat(lambda: storage.read_bytes(storage.join(checkpoint.url, STATE)))
    return holds_copy(folder / CHECKPOINTS / name_checkpoint(checkpoint.number), state, checkpoint.names)


def _clear_folder(folder: Path, numbers: set[int], *, keeps_logs: bool) -> None:
    """Remove what earlier runs left in the working directory.

    numbers: numbers of the checkpoints to keep.
    keeps_logs: keep the logs too.
    """
    for number in list_numbers(folder):
        if number not in numbers:
            shutil.rmtree(folder / CHECKPOINTS / name_checkpoint(number))
    for path in list(folder.iterdir()) if folder.is_dir() else []:
        if path.name in (CHECKPOINTS, UNFINISHED) or (keeps_logs and path.name != LINKS):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def _noting_signals() -> Iterator[list[float]]:
    """Keep signals such as SIGTERM from ending the process in the block. Yield a list of their times."""
    times = list[float]()
    if threading.current_thread() is not threading.main_thread():
        yield times
        return

    def note(number: int, _: FrameType | None) -> None:
        times.append(time.monotonic())

    noted = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2, signal.SIGXCPU)
    ignored = [number for number in noted if signal.getsignal(number) is signal.SIG_IGN]  # under nohup
    before = {number: signal.signal(number, note) for number in noted if number not in ignored}
    try:
        yield times
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
