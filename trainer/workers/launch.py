"""The flag ``--dist``: the command itself starts the workers on this machine, through torch's launcher."""

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
from trainer.workers.launchers import DEFAULT_THREADS, LAUNCHER_OF_WORKER, find_launcher, is_launched
from trainer.workers.signals import find_signal, ignore_checkpoint_signal, list_ending_signals

MODULE_PATHS = "BERTDATA_PATHS"
"""Environment variable of workers that --dist started. It has the directories in which they look for modules,
one per line.
"""

_BY_PATH = Path(__file__).parents[1] / "by_path.py"
_REPORTED, _WORKER, _DONE = "reported", "worker.", "done."
"""Names of files in the folder that the launcher and its workers share. "reported": a worker has printed an
error. "worker.": a worker has started. "done.": a worker has finished its work. The last two names end with
the worker's process id.
"""


def launch_workers(config: Config, *words: str) -> bool:
    """Run the trainer's command in world_size worker processes if --dist is set. Return True when all are
    done.

    Returns False if --dist is not set, if there is only one worker, or if a launcher has already started this
    process. Signals that concern a training are forwarded to each worker.
    words: command line for the workers.
    Raises ReportedError if a worker failed and has printed the reason. Raises WorkerLost if a worker failed
    without a message, or ended before its work was done.
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
    # Collect the signals in a list, from which _forward_signals sends them to the workers.
    for number in (*ending, find_signal(config.run.checkpoint_signal)):
        signal.signal(number, lambda received, _: signals.append(received))
    with TemporaryDirectory() as name:
        folder = Path(name)
        threads = str(max(1, count_available_cores() // size))
        is_default = not os.environ.get("OMP_NUM_THREADS")
        if is_default:
            os.environ["OMP_NUM_THREADS"] = os.environ[DEFAULT_THREADS] = threads
        os.environ[LAUNCHER_OF_WORKER] = f"{os.getpid()} {folder}"
        os.environ[MODULE_PATHS] = "\n".join(_list_module_paths())
        try:
            # Run torch's launcher in a thread, where it does not handle signals. In the main thread it would
            # kill workers that take longer than 30 s to save a checkpoint.
            with ThreadPoolExecutor(1) as pool:
                ended = pool.submit(_launch_processes, size, folder, [str(_BY_PATH), *words])
                _forward_signals(signals, folder, ended)
        finally:
            del os.environ[LAUNCHER_OF_WORKER], os.environ[MODULE_PATHS]
            if is_default:
                del os.environ["OMP_NUM_THREADS"], os.environ[DEFAULT_THREADS]
        statuses = ended.result()
        # Exit status 0 alone does not mean that a worker has done its work. Each worker must also have left
        # its file.
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
    """Return the directories in which workers look for modules. The working directory comes last.

    A user's plug-ins may be in the working directory. But a file trainer.py or a folder schemas in it must
    not replace the packages with these names.
    """
    own, here = str(Path(__file__).parents[2]), os.getcwd()
    paths = list(dict.fromkeys(map(os.path.abspath, sys.path)))
    # Workers must find these packages, but an editable install does not put them on the path.
    if own not in paths:
        paths.append(own)
    return paths if here == own else [*(path for path in paths if path != here), here]


def _launch_processes(size: int, folder: Path, words: Sequence[str]) -> list[int]:
    """Run Python with these command-line arguments in ``size`` processes.

    Returns the exit statuses of the processes that failed first, [] if none failed.
    folder: directory for the log files of torch's launcher.
    """
    with name_missing_extra("torch", "train"):
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

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
    before = logging.root.manager.disable
    logging.disable()  # silence torch's launcher, because the workers themselves print their errors
    try:
        elastic_launch(config, sys.executable)(*words)
    except ChildFailedError as error:
        return [failure.exitcode for _, failure in sorted(error.failures.items())]
    finally:
        logging.disable(before)
    return []


def _forward_signals(signals: Sequence[int], folder: Path, ended: "Future[Any]") -> None:
    """Send each signal that this process has received to all workers, also to workers that start later.

    signals: the signals received so far. The signal handler appends to this list.
    folder: folder in which each worker leaves a file named by its process id.
    ended: done when the workers have ended.
    """
    sent = dict[int, int]()
    while not ended.done():
        time.sleep(0.05)
        if not signals:
            continue
        # sent: number of signals that each process has been sent. A worker that starts later gets all of
        # them.
        for process in (int(path.name.removeprefix(_WORKER)) for path in folder.glob(f"{_WORKER}*")):
            for number in signals[sent.get(process, 0) :]:
                with suppress(ProcessLookupError):  # the process has ended already
                    os.kill(process, number)
            sent[process] = len(signals)


@contextmanager
def run_as_worker() -> Iterator[None]:
    """Run the block as a worker, which ends when its launcher ends.

    If several workers of --dist raise errors, only the first error is kept. The other workers raise
    ReportedError, which prints nothing.
    """
    launcher, _, name = os.environ.get(LAUNCHER_OF_WORKER, "").partition(" ")
    if is_launched():
        Thread(target=_end_after_launcher, args=[int(launcher or os.getppid())], daemon=True).start()
    if not launcher:
        yield
        return
    folder = Path(name)
    try:
        with suppress(FileNotFoundError):  # the launcher has already ended and removed the folder
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
    """End this process when the launcher ends. If it trains, it saves a checkpoint first.

    The launcher is the parent process. When a parent ends, the operating system gives the process another
    parent.
    launcher: process id of the launcher.
    """
    while os.getppid() == launcher:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
