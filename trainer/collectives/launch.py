"""Workers on this machine that the command starts itself, where no launcher did: ``--dist``."""

import math
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from threading import Thread

from bertdata.errors import BertDataError
from bertdata.io.process_pool import available_cores
from trainer.collectives import find_launcher
from trainer.config import Config
from trainer.errors import ReportedError, WorkerLost

_MARK = "BERTDATA_LAUNCHED"  # in a worker's environment: who started it, and the file of who told an error
_GRACE_SECONDS = 15.0  # for the others to end by themselves when one has failed


def launched(config: Config, *words: str) -> bool:
    """Run the trainer's command in world_size workers if it is to be and nobody has; whether that was so.

    SIGTERM and Ctrl-C are handed on to each. ReportedError when one failed and told why; WorkerLost if not.
    """
    if not config.dist or config.world_size == 1 or find_launcher() != "single":
        return False
    config.require("world_size")
    with TemporaryDirectory() as place:
        told, asked, workers = Path(place, "told"), list[int](), list[Popen[bytes]]()

        def hand_on(number: int, _: object) -> None:
            asked.append(number)
            for worker in workers:
                worker.send_signal(number)

        signal.signal(signal.SIGTERM, hand_on)
        signal.signal(signal.SIGINT, hand_on)
        common = _environment(config.world_size) | {_MARK: f"{os.getpid()} {told}"}
        for rank in map(str, range(config.world_size)):
            own = common | {"RANK": rank, "LOCAL_RANK": rank}
            # A session of its own: a terminal's Ctrl-C must not come twice, which would interrupt at once.
            workers.append(Popen([sys.executable, "-m", "trainer", *words], env=own, start_new_session=True))
        statuses = _wait(workers)
        if not any(statuses):
            return True
        if not (asked or told.exists()):
            raise WorkerLost(f"the workers ended with status {', '.join(map(str, statuses))}")
    worst = max(filter(None, statuses))
    raise ReportedError(worst if worst > 0 else 128 - worst)


def _environment(size: int) -> dict[str, str]:
    """What torch.distributed looks for, and a fair share of the cores."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {"OMP_NUM_THREADS": max(1, available_cores() // size)}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    meeting["TORCHELASTIC_RUN_ID"] = "dist"  # by which some backends know
    return {name: str(value) for name, value in {**own, **os.environ, **meeting}.items()}


def _wait(workers: list[Popen[bytes]]) -> list[int]:
    """How they ended; those that hang when one has failed are killed."""
    end = math.inf
    while None in (statuses := [worker.poll() for worker in workers]):
        time.sleep(0.05)
        if any(statuses):
            end = min(end, time.monotonic() + _GRACE_SECONDS)
        if time.monotonic() > end:
            for worker in workers:
                worker.kill()
    return [worker.returncode for worker in workers]


@contextmanager
def as_worker() -> Iterator[None]:
    """For a worker that was started here: ends with its launcher; of all workers' errors one is told."""
    launcher, _, told = os.environ.get(_MARK, "").partition(" ")
    if launcher:
        Thread(target=_end_with, args=[int(launcher)], daemon=True).start()
    try:
        yield
    except (BertDataError, KeyboardInterrupt) as error:
        if not told:
            raise
        with suppress(FileNotFoundError):  # the launcher is gone
            try:
                open(told, "x").close()
            except FileExistsError:
                raise ReportedError(getattr(error, "exit_status", 130)) from None
        raise


def _end_with(launcher: int) -> None:
    while os.getppid() == launcher:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
