"""Launch of the workers on this machine by the command itself, without a launcher: ``--dist``."""

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

from bertdata.errors import BertDataError, SettingsError
from bertdata.io.process_pool import available_cores
from trainer.collectives.launchers import LAUNCHED
from trainer.config.settings import Config
from trainer.errors import ReportedError, WorkerLost

_GRACE_SECONDS = 15.0  # for the other workers to end after one has failed


def launched(config: Config, *words: str) -> bool:
    """Run the trainer's command in world_size workers; True when all are done.

    SIGTERM and Ctrl-C are forwarded to each worker. ReportedError when a worker failed and printed why,
    WorkerLost when one failed without.
    """
    size = config.run.world_size
    if size is None:
        raise SettingsError("world_size is missing: give --world-size")
    with TemporaryDirectory() as folder:
        reported = Path(folder, "reported")
        signals = list[int]()
        workers = list[Popen[bytes]]()

        def forward(number: int, _: object) -> None:
            signals.append(number)
            for worker in workers:
                worker.send_signal(number)

        signal.signal(signal.SIGTERM, forward)
        signal.signal(signal.SIGINT, forward)
        common = _environment(size) | {LAUNCHED: f"{os.getpid()} {reported}"}
        for rank in map(str, range(size)):
            own = common | {"RANK": rank, "LOCAL_RANK": rank}
            # In its own session, so that a terminal's Ctrl-C arrives once; a second one interrupts at once.
            workers.append(Popen([sys.executable, "-m", "trainer", *words], env=own, start_new_session=True))
        statuses = _wait(workers)
        if not any(statuses):
            return True
        if not (signals or reported.exists()):
            raise WorkerLost(f"the workers ended with status {', '.join(map(str, statuses))}")
    worst = max(filter(None, statuses))
    raise ReportedError(worst if worst > 0 else 128 - worst)


def _environment(size: int) -> dict[str, str]:
    """Environment variables for torch.distributed, and an equal share of the cores."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {"OMP_NUM_THREADS": max(1, available_cores() // size)}
    rendezvous = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
    }
    rendezvous["TORCHELASTIC_RUN_ID"] = "dist"  # some backends detect the launcher by it
    return {name: str(value) for name, value in {**own, **os.environ, **rendezvous}.items()}


def _wait(workers: list[Popen[bytes]]) -> list[int]:
    """The exit statuses; workers that still run some time after one has failed are killed."""
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
    """Context of a worker started here: it ends with its launcher, and only one worker reports its error."""
    launcher, _, reported = os.environ.get(LAUNCHED, "").partition(" ")
    if launcher:
        Thread(target=_end_after, args=[int(launcher)], daemon=True).start()
    try:
        yield
    except (BertDataError, KeyboardInterrupt) as error:
        if not reported:
            raise
        with suppress(FileNotFoundError):  # the launcher has ended
            try:
                open(reported, "x").close()
            except FileExistsError:
                raise ReportedError(getattr(error, "exit_status", 130)) from None
        raise


def _end_after(launcher: int) -> None:
    """End this process when the launcher has ended."""
    while os.getppid() == launcher:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
