"""The ``--dist`` flag: the command starts the workers on this machine itself, with torch's launcher."""

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
from bertdata.io.process_pool import count_available_cores
from trainer.config.settings import Config
from trainer.errors import ReportedError, WorkerLost, name_missing_extra
from trainer.workers.launchers import LAUNCHER_OF_WORKER, find_launcher, is_launched
from trainer.workers.signals import find_signal, ignore_checkpoint_signal, list_ending_signals

MODULE_PATHS = "BERTDATA_PATHS"
"""Environment variable of --dist workers: directories in which they search for modules, one per line."""

_BY_PATH = Path(__file__).parents[1] / "by_path.py"
_REPORTED, _WORKER, _DONE = "reported", "worker.", "done."
"""Names of files in the folder that launcher and workers share: a worker has reported an error, a worker has
started, a worker has done its work. Names of the last two continue with the worker's process id.
"""


def launch_workers(config: Config, *words: str) -> bool:
    """With --dist, run the trainer's command in world_size workers. Return True when all are done.

    Returns False without --dist, if one worker is enough, and if a launcher started this process. The signals
    of a training are forwarded to each worker.
    words: command line for the workers.
    Raises ReportedError if a worker failed and printed why. Raises WorkerLost if a worker failed without a
    message, or ended before its work was done.
    """
    ignore_checkpoint_signal(config.run.checkpoint_signal)
    keys = config.workers
    size = keys.world_size
    if not keys.dist or size == 1 or find_launcher() != "single":
        return False
    if size is None:
        raise SettingsError("world_size is missing: give --world-size")
    signals = list[int]()
    ending = list_ending_signals(config.run.checkpoint_signal)
    # Collect signals. _forward_signals sends them to the workers.
    for number in (*ending, find_signal(config.run.checkpoint_signal)):
        signal.signal(number, lambda received, _: signals.append(received))
    with TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, count_available_cores() // size)))
        os.environ[LAUNCHER_OF_WORKER] = f"{os.getpid()} {folder}"
        os.environ[MODULE_PATHS] = "\n".join(_list_module_paths())
        try:
            # torch's launcher runs in a thread, where it leaves signals alone. In the main thread it would
            # kill workers that take longer than 30 s to save.
            with ThreadPoolExecutor(1) as pool:
                ended = pool.submit(_launch_processes, size, folder, [str(_BY_PATH), *words])
                _forward_signals(signals, folder, ended)
        finally:
            del os.environ[LAUNCHER_OF_WORKER], os.environ[MODULE_PATHS]
        statuses = ended.result()
        # Status 0 alone does not mean that a worker has done its work. Each must also have left its file.
        done = len(list(folder.glob(f"{_DONE}*")))
        if not statuses and done == size:
            return True
        if not statuses:
            raise WorkerLost(f"{size - done} of {size} workers ended before their work was done")
        if not (set(signals) & set(ending) or Path(folder, _REPORTED).exists()):
            raise WorkerLost(f"the workers ended with status {', '.join(map(str, statuses))}")
    worst = max(statuses)
    raise ReportedError(worst if worst > 0 else 128 - worst)


def _list_module_paths() -> list[str]:
    """Return the directories in which workers search for modules, with the working directory last.

    A user's plug-ins may be in the working directory. But a file trainer.py or a folder schemas there must
    not replace the packages of that name.
    """
    own, here = str(Path(__file__).parents[2]), os.getcwd()
    paths = list(dict.fromkeys(map(os.path.abspath, sys.path)))
    # make sure that workers find these packages, which an editable install finds in another way
    if own not in paths:
        paths.append(own)
    return paths if here == own else [*(path for path in paths if path != here), here]


def _launch_processes(size: int, folder: Path, words: Sequence[str]) -> list[int]:
    """Run Python with these command-line arguments in ``size`` processes.

    Return the exit statuses of those that failed first.
    """
    with name_missing_extra("torch", "train"):
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable()  # silences only the launcher's logging, because the workers print what there is to say
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


def _forward_signals(signals: Sequence[int], folder: Path, ended: "Future[Any]") -> None:
    """Send each signal that this process receives to all workers, also to workers that start later.

    signals: the signals received so far. A signal handler adds to the list. folder: folder in which each
    worker notes its process id. ended: done when the workers have ended.
    """
    sent = dict[int, int]()
    while not ended.done():
        time.sleep(0.05)
        if not signals:
            continue
        # sent: how many of the signals each process has received. A worker that starts later gets all of
        # them.
        for process in (int(path.name.removeprefix(_WORKER)) for path in folder.glob(f"{_WORKER}*")):
            for number in signals[sent.get(process, 0) :]:
                with suppress(ProcessLookupError):  # the process has ended
                    os.kill(process, number)
            sent[process] = len(signals)


@contextmanager
def run_as_worker() -> Iterator[None]:
    """Run the block as a launcher's worker, which ends when its launcher ends.

    If several --dist workers raise errors, only the first keeps its error. The others raise ReportedError,
    which prints nothing.
    """
    launcher, _, name = os.environ.get(LAUNCHER_OF_WORKER, "").partition(" ")
    if is_launched():
        Thread(target=_end_after_launcher, args=[int(launcher or os.getppid())], daemon=True).start()
    if not launcher:
        yield
        return
    folder = Path(name)
    try:
        with suppress(FileNotFoundError):  # the launcher has ended and removed the folder
            Path(folder, f"{_WORKER}{os.getpid()}").touch()
        yield
        with suppress(FileNotFoundError):
            Path(folder, f"{_DONE}{os.getpid()}").touch()
    except (BertDataError, KeyboardInterrupt) as error:
        with suppress(FileNotFoundError):
            try:
                Path(folder, _REPORTED).touch(exist_ok=False)
            except FileExistsError:
                raise ReportedError(getattr(error, "exit_status", 130)) from None
        raise


def _end_after_launcher(launcher: int) -> None:
    """When the launcher has ended, end this process too, with a checkpoint if it trains.

    The launcher is the parent process. When it ends, the system gives this process another parent.
    """
    while os.getppid() == launcher:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
