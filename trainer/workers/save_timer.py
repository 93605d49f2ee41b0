"""Checkpoints after a time, for ``--checkpoint-every 15min``."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.workers.collective import Stopping  # this module imports torch


@contextmanager
def request_saves(stopping: "Stopping", seconds: float | None) -> Iterator[None]:
    """Ask all workers for a checkpoint each time that so many seconds of the block have passed.

    Only one worker of a run calls this with a time. The workers then agree on the update after which they
    save, as for the signal of ``--checkpoint-signal``.
    seconds: time between two requests. None: no requests.
    """
    if seconds is None:
        yield
        return
    ends = threading.Event()

    def request_again_and_again() -> None:
        while not ends.wait(seconds):
            stopping.request_save()

    thread = threading.Thread(target=request_again_and_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
