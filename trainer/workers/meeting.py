"""Meeting of the workers of torch.distributed, which find each other through a key-value store at rank 0's
address.

The store must be empty at each start. But when torchrun restarts its workers, it keeps the store of the
previous start. In it, the workers would find addresses of processes that have ended, and wait for them. So at
each start rank 0 chooses a part of the store that was never used before.
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
"""Seconds within which a host name must be resolved. Right after a machine has started, its name may not be
known yet.
"""

_AGAIN_SECONDS = 1.0
_SILENT_SECONDS = 15.0
"""A worker that waits longer than this number of seconds for the others prints a line about it."""

_JOIN_SECONDS = 1800.0  # the default of torch
_CURRENT = "bertdata/current"


def meet_workers() -> tuple[Store, int, int]:
    """Wait for the other workers. Return an empty store that all share, the rank, and the number of workers.

    Raises SettingsError if the address of rank 0 is not known, and WorkerLost if the workers do not find each
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
    """Raise SettingsError on every worker unless all have the same device.

    ``--device auto`` may find different devices on different machines. They have different communication
    backends, which could not connect. So the names of the devices are compared through the store, before the
    backends connect.
    device: name of this worker's device, as ``--device`` takes it.
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
        if differs:  # the store ends with rank 0, so rank 0 waits until the others have read from it
            for other in range(1, size):
                store.get(f"{key}/told/{other}")
    if differs:
        raise SettingsError(
            f"the workers have different devices: {differs}; give all of them the same --device"
        )


def _check_address(address: str) -> None:
    """Raise SettingsError if the host name of rank 0 cannot be resolved within _RESOLVE_SECONDS."""
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

    # Use a thread, because the operating system may wait for a name server for much longer.
    threading.Thread(target=look_up, daemon=True).start()
    if not is_known.wait(_RESOLVE_SECONDS):
        is_known.set()  # this ends the thread
        raise SettingsError(
            f"MASTER_ADDR is {address!r}, which this machine does not know ({faults[-1]}); set the "
            "name or address of rank 0's machine"
        )


@contextmanager
def _announce_wait(line: str) -> Iterator[None]:
    """Print the line if the code in the block takes longer than _SILENT_SECONDS."""
    timer = threading.Timer(_SILENT_SECONDS, lambda: say_error(line))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _find_unused_part(store: Store, rank: int, size: int) -> Store:
    """Return the part of the store that rank 0 has chosen at this start.

    Parts have names. Another rank may read a name that rank 0 has left at an earlier start. To find out, it
    asks rank 0 under that name. A process of an earlier start does not answer. Then it reads the name again,
    until it gets an answer.
    """
    current = f"{_CURRENT}/{os.environ.get('TORCHELASTIC_RUN_ID', '')}"
    mine = secrets.token_hex(8)
    # Rank 0 publishes a random name, and answers every rank that asks under this name.
    if rank == 0:
        name = mine
        store.set(current, name)
        for other in range(1, size):
            process = store.get(f"{name}/asks/{other}").decode()
            store.set(f"{name}/answer/{other}/{process}", "yes")
        return PrefixStore(name, store)
    # All other ranks ask under the newest name, again every second. The answer contains ``mine``, so it
    # cannot be the answer to a process of an earlier start.
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
