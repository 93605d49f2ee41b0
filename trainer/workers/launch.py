"""Launch of the workers on this machine by the command itself, by torch's launcher: ``--dist``."""

import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from bertdata.errors import BertDataError, SettingsError
from bertdata.io.process_pool import available_cores
from trainer.config.settings import Config
from trainer.errors import ReportedError, WorkerLost, naming_extra
from trainer.workers.launchers import LAUNCHED, find_launcher

_REPORTED, _WORKER = "reported", "worker."
"""In the folder that launcher and workers share: the file of a reported error, and one for each process."""


def launch_workers(config: Config, *words: str) -> bool:
    """Run the trainer's command in world_size workers, with --dist. True when all are done.

    False where --dist is not given, where one worker is enough, and where a launcher started this process.
    SIGTERM and Ctrl-C are forwarded to each worker. ReportedError when a worker failed and printed why,
    WorkerLost when one failed without.
    """
    keys = config.workers
    size = keys.world_size
    if not keys.dist or size == 1 or find_launcher() != "single":
        return False
    if size is None:
        raise SettingsError("world_size is missing: give --world-size")
    signals = list[int]()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    with TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // size)))
        os.environ[LAUNCHED] = f"{os.getpid()} {folder}"
        try:
            # In a thread torch leaves signals alone. In the main one it kills workers that save for 30 s.
            with ThreadPoolExecutor(1) as pool:
                ended = pool.submit(_launch, size, folder, ["-m", "trainer", *words])
                _forward(signals, folder, ended)
        finally:
            del os.environ[LAUNCHED]
        statuses = ended.result()
        if not statuses:
            return True
        if not (signals or Path(folder, _REPORTED).exists()):
            raise WorkerLost(f"the workers ended with status {', '.join(map(str, statuses))}")
    worst = max(statuses)
    raise ReportedError(worst if worst > 0 else 128 - worst)


def _launch(size: int, folder: Path, words: Sequence[str]) -> list[int]:
    """Run Python with these words in so many workers. Returns the statuses of those that failed first."""
    with naming_extra("torch", "train"):
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # of this process: the workers say what there is to say
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=size,
        run_id="dist",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",  # a free port
        local_addr="127.0.0.1",
        max_restarts=0,
        monitor_interval=0.05,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
    )
    try:
        elastic_launch(config, sys.executable)(*words)
    except ChildFailedError as error:
        return [failure.exitcode for _, failure in sorted(error.failures.items())]
    return []


def _forward(signals: Sequence[int], folder: Path, ended: "Future[Any]") -> None:
    """Send each signal that this process receives to all workers, also to those that start after it."""
    sent = dict[int, int]()
    while not ended.done():
        time.sleep(0.05)
        if not signals:
            continue
        for process in (int(path.name.removeprefix(_WORKER)) for path in folder.glob(f"{_WORKER}*")):
            for number in signals[sent.get(process, 0) :]:
                with suppress(ProcessLookupError):  # it has ended
                    os.kill(process, number)
            sent[process] = len(signals)


@contextmanager
def as_worker() -> Iterator[None]:
    """Context of a worker started here: it ends with its launcher, and only one worker reports its error."""
    launcher, _, name = os.environ.get(LAUNCHED, "").partition(" ")
    if not launcher:
        yield
        return
    folder = Path(name)
    Thread(target=_end_after, args=[int(launcher)], daemon=True).start()
    try:
        with suppress(FileNotFoundError):  # the launcher has ended
            Path(folder, f"{_WORKER}{os.getpid()}").touch()
        yield
    except (BertDataError, KeyboardInterrupt) as error:
        with suppress(FileNotFoundError):
            try:
                Path(folder, _REPORTED).touch(exist_ok=False)
            except FileExistsError:
                raise ReportedError(getattr(error, "exit_status", 130)) from None
        raise


def _end_after(launcher: int) -> None:
    """End this process when the launcher has ended."""
    while os.getppid() == launcher:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
