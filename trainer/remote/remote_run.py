"""A run whose directory is a URL, as one worker sees it: the local directory that stands for it, and on
rank 0 the claim and the uploads.
"""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.file_check import compute_file_md5
from bertdata.io.terminal import say_error
from trainer.errors import CheckpointError, WorkerLost
from trainer.remote.claim import Claim
from trainer.remote.folders import find_upload_note, find_working_folder
from trainer.remote.retries import repeat
from trainer.remote.stored_run import (
    CHECKPOINTS,
    STATE,
    StoredCheckpoint,
    StoredRun,
    download_checkpoint,
    download_file,
    find_best_number,
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
    overwrites: True if a new run may remove the checkpoints of an earlier one.
    number: number of the checkpoint to continue from. None: the newest that is whole.
    """

    continues: bool
    overwrites: bool = False
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

    def bring(self, wanted: Continuation) -> list[tuple[int, str]]:
        """Make the working directory equal to the run in the store, as far as this run needs it.

        It then has the logs and, for a continued run, the checkpoint to continue from. What another run left
        in the working directory is removed.
        Returns the number of each checkpoint that is there now, with the md5 of its state.json.
        DatasetError for a new run, if an earlier one has checkpoints only in the working directory.
        """
        run = StoredRun.read(self._url)
        newest = _choose_checkpoint(run, wanted.number, self._log) if wanted.continues else None
        newer = set[int]()
        if wanted.number is None and _was_last_here(newest, self._folder):
            # This machine has trained on after its last upload, or could not upload anything.
            after = -1 if newest is None else newest.number
            newer = {number for number in list_numbers(self._folder) if number > after}
        if newer and not wanted.continues:
            if not wanted.overwrites:
                raise DatasetError(
                    f"{self._url}: is in use: checkpoint {max(newer)} of an earlier run is only in "
                    f"{self._folder.parent}, because it was not uploaded; give --resume to continue the run, "
                    "or --overwrite-output-dir to remove it"
                )
            newer = set()
        uploaded = {} if newest is None else _download(run, newest, self._folder)
        _clear_folder(self._folder, {*uploaded, *newer}, keeps_logs=bool(newer))
        note = find_upload_note(self._folder)
        if newest is None:
            note.unlink(missing_ok=True)
        else:
            note.write_bytes(uploaded[newest.number])
        if newer:
            self._log(f"checkpoint {max(newer)} was not uploaded, but is still on this machine")
        else:
            download_logs(run, self._folder)
        self._uploader = Uploader(
            self._folder,
            self._url,
            self._keep,
            self._log,
            may_write=self._claim.check,
            has_logs=not newer,
        )
        for number, state in uploaded.items():
            self._uploader.note_stored(number, state)
        return list_states(self._folder)

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
                    uploader.stop_at_once()  # the claim is released next
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


def list_states(folder: Path) -> list[tuple[int, str]]:
    """Return number and md5 of state.json of each checkpoint in a run's local directory."""
    paths = {
        number: folder / CHECKPOINTS / name_checkpoint(number) / STATE for number in list_numbers(folder)
    }
    return [(number, compute_file_md5(str(path))) for number, path in paths.items()]


def remove_strange_checkpoints(folder: Path, known: Collection[tuple[int, str]]) -> None:
    """Remove checkpoints of other runs from the working directory of a machine on which rank 0 does not run.

    Such a run had the same URL. If one of its checkpoints stayed, all machines might continue from it.
    known: the checkpoints that rank 0 has, from ``list_states``. Later ones stay if there is a copy of a
    known one next to them, because then this machine has trained on in the same run.
    """
    same = [number for number, md5 in list_states(folder) if (number, md5) in known]
    for number in list_numbers(folder):
        if number not in same and not (same and number > max(same)):
            shutil.rmtree(folder / CHECKPOINTS / name_checkpoint(number))
    if not list_numbers(folder):
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


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
    """Download a checkpoint, the one of the best evaluation so far, and for phase 2 the end of phase 1.

    Returns the contents of their state.json by number.
    """
    chosen, state = {newest.number: newest}, newest.read_state()
    for number in (int(state.get("phase_start", 0)), find_best_number(state)):
        further = None if number is None else run.checkpoints.get(number)
        with suppress(CheckpointError):  # training does not read these, so they may be missing
            if further is not None:
                further.check_is_whole()
                chosen[further.number] = further
    paths = {one.number: download_checkpoint(one, folder) for one in chosen.values()}
    return {number: (path / STATE).read_bytes() for number, path in paths.items()}


def _was_last_here(checkpoint: StoredCheckpoint | None, folder: Path) -> bool:
    """Return True if no other machine has written to the store after the run in the working directory.

    checkpoint: the newest checkpoint of the store, or None if it has none.
    """
    note = find_upload_note(folder)
    if checkpoint is None:
        return not note.is_file()  # else the uploaded run has been removed from the store
    state = repeat(lambda: storage.read_bytes(storage.join(checkpoint.url, STATE)))
    if note.is_file() and note.read_bytes() == state:
        return True
    # A killed run may have uploaded a checkpoint without noting it.
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
        # Without checkpoints, their folder is removed too: it would count as the one of an earlier run.
        kept = (UNFINISHED, CHECKPOINTS) if numbers else (UNFINISHED,)
        if path.name in kept or (keeps_logs and path.name != LINKS):
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
