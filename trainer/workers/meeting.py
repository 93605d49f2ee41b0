"""How the workers of torch.distributed find each other: by a key-value store at rank 0's address, which must
be empty at each start.

When torchrun restarts its workers, it keeps the same store. In it, the restarted workers would find the
addresses of processes that have ended, and wait for them. So at each start rank 0 chooses a part of the store
that has never been used.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from bertdata.errors import SettingsError
from bertdata.io.terminal import say_error
from trainer.errors import WorkerLost
from trainer.workers.launchers import read_number

_RESOLVE_SECONDS = 10.0
"""Seconds in which a host name must be resolved. The name of a machine that has just started may be unknown
at first.
"""

_AGAIN_SECONDS = 1.0
_SILENT_SECONDS = 15.0
"""Seconds of waiting for the other workers before a line says so."""

_JOIN_SECONDS = 1800.0  # torch's default
_CURRENT = "bertdata/current"


def meet_workers() -> tuple[Store, int, int]:
    """Meet the other workers. Return an empty store that all share, the rank and the number of workers.

    Raises SettingsError if rank 0's address is not known, and WorkerLost if the workers do not find each
    other.
    """
    rank, size = read_number("RANK"), read_number("WORLD_SIZE")
    address = os.environ.get("MASTER_ADDR")
    if not address:
        raise SettingsError("MASTER_ADDR is not set: give rank 0's machine")
    port = read_number("MASTER_PORT")
    _check_address(address)
    place = f"{address}:{port} (MASTER_ADDR, MASTER_PORT)"
    where = "where rank 0 must be the only program"
    with _announce_wait(f"trainer: rank {rank} of {size} waits for the others at {place}, {where}"):
        try:
            store, *_ = next(rendezvous("env://", timeout=timedelta(seconds=_JOIN_SECONDS)))
            if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
                store = _find_unused_part(store, rank, size)
        except RuntimeError as error:
            found = str(error).splitlines()[0]
            if "EADDRINUSE" in str(error):
                found = "another program uses the port; set another MASTER_PORT for all workers"
            raise WorkerLost(f"the workers could not meet at {place}: {found}") from error
    return store, rank, size


def compare_devices(store: Store, rank: int, size: int, device: str) -> None:
    """Raise SettingsError on every worker unless all of them have the same device.

    Workers of different devices, which ``--device auto`` may find on different machines, have different
    backends and could not connect. So the names are compared through the store, before the connection.

    device: this worker's device, as ``--device`` names it.
    """
    key = "bertdata/device"
    store.set(f"{key}/{rank}", device)
    if rank > 0:
        differs = store.get(f"{key}/differs").decode()
        store.set(f"{key}/told/{rank}", "yes")
    else:
        devices = [store.get(f"{key}/{other}").decode() for other in range(size)]
        others = [f"worker {other} has {found}" for other, found in enumerate(devices) if found != device]
        differs = f"worker 0 has {device}, {others[0]}" if others else ""
        store.set(f"{key}/differs", differs)
        if differs:  # rank 0 holds the store, so it waits until the others have read from it before it ends
            for other in range(1, size):
                store.get(f"{key}/told/{other}")
    if differs:
        raise SettingsError(
            f"the workers have different devices: {differs}; give all of them the same --device"
        )


def _check_address(address: str) -> None:
    """Raise SettingsError if the name of rank 0's machine cannot be resolved in time."""
    faults = ["no answer"]
    is_known = threading.Event()

    def look_up() -> None:
        while not is_known.is_set():
            try:
                socket.getaddrinfo(address, None)
                is_known.set()
            except (OSError, UnicodeError) as error:
                faults.append(getattr(error, "strerror", None) or str(error))
                time.sleep(_AGAIN_SECONDS)

    # In a thread, because the system may wait for a name server much longer.
    threading.Thread(target=look_up, daemon=True).start()
    if not is_known.wait(_RESOLVE_SECONDS):
        is_known.set()  # ends the thread
        raise SettingsError(
            f"MASTER_ADDR is {address!r}, which this machine does not know ({faults[-1]}); set the "
            "name or address of rank 0's machine"
        )


@contextmanager
def _announce_wait(line: str) -> Iterator[None]:
    """Print the line if the code in the context takes long."""
    timer = threading.Timer(_SILENT_SECONDS, lambda: say_error(line))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _find_unused_part(store: Store, rank: int, size: int) -> Store:
    """Return the part of the store that rank 0 chooses at this start.

    Another rank may read a name that rank 0 chose at an earlier start. That process no longer answers, so the
    rank asks rank 0 under the name that it read, and reads again until it gets an answer.
    """
    current = f"{_CURRENT}/{os.environ.get('TORCHELASTIC_RUN_ID', '')}"
    mine = secrets.token_hex(8)
    # Rank 0 publishes a random name and answers each rank that asks under this name.
    if rank == 0:
        name = mine
        store.set(current, name)
        for other in range(1, size):
            process = store.get(f"{name}/asks/{other}").decode()
            store.set(f"{name}/answer/{other}/{process}", "yes")
        return PrefixStore(name, store)
    # The other ranks ask again every second under the newest name. The answer contains ``mine``, so that it
    # cannot be an answer to a process of an earlier start.
    deadline = time.monotonic() + _JOIN_SECONDS
    while time.monotonic() < deadline:
        name = store.get(current).decode()
        store.set(f"{name}/asks/{rank}", mine)
        answered = time.monotonic() + _AGAIN_SECONDS
        while time.monotonic() < answered:
            if store.check([f"{name}/answer/{rank}/{mine}"]):
                return PrefixStore(name, store)
            time.sleep(0.02)
    raise WorkerLost("rank 0 does not answer in the launcher's store")
