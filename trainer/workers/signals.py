"""The signals of a training: those that end it with a checkpoint, and one that only asks for a checkpoint.

The checkpoint signal is USR1, unless ``--checkpoint-signal`` names another. All other signals that schedulers
and terminals send (TERM, USR2 and XCPU from Slurm, Grid Engine and LSF, HUP from a lost terminal) end the
training with a checkpoint, as Ctrl-C does. SIGQUIT is left for emergencies and ends the process at once.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from trainer.config.sections.run import CHECKPOINT_SIGNALS
from trainer.errors import WorkerLost

if TYPE_CHECKING:
    from trainer.workers.collective import Stopping  # which needs torch

ENDING_SIGNALS = ("TERM", "INT", "HUP", "USR1", "USR2", "XCPU")
"""Signals that end a training, except the one that asks for a checkpoint."""


def find_signal(name: str) -> signal.Signals:
    """Return the signal with this name, which is written without SIG."""
    return signal.Signals[f"SIG{name}"]


def list_ending_signals(checkpoint_signal: str) -> list[signal.Signals]:
    """Return the signals that end a training with a checkpoint.

    The checkpoint signal is not among them. HUP, USR1, USR2 and XCPU are left out if this process ignores
    them, as it does with HUP under nohup.
    """
    found = [find_signal(name) for name in ENDING_SIGNALS]
    always = (signal.SIGTERM, signal.SIGINT)
    return [
        number
        for number in found
        if number != find_signal(checkpoint_signal)
        and (number in always or signal.getsignal(number) is not signal.SIG_IGN)
    ]


@contextmanager
def ignoring_checkpoint_signals() -> Iterator[None]:
    """Ignore checkpoint signals in the block while no training is under way, before it or between two.

    Otherwise the system would end the process. Only the first checkpoint signal has no handler at this point.
    The handlers of all of them are restored, because the training in the block may have replaced any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {find_signal(name): signal.getsignal(find_signal(name)) for name in CHECKPOINT_SIGNALS}
    ignore_checkpoint_signal(CHECKPOINT_SIGNALS[0])
    try:
        yield
    finally:
        for ended, handler in before.items():
            signal.signal(ended, handler)


def ignore_checkpoint_signal(checkpoint_signal: str) -> None:
    """Make the checkpoint signal do nothing until a training begins."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(find_signal(checkpoint_signal), _do_nothing)


@contextmanager
def handle_training_signals(stopping: "Stopping", checkpoint_signal: str) -> Iterator[None]:
    """In the block, ask all workers to stop, or to save, when signals arrive.

    A second Ctrl-C interrupts at once.
    """

    def stop(number: int, _: FrameType | None) -> None:
        stopping.request()
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def save(number: int, _: FrameType | None) -> None:
        stopping.request_save()

    before: dict[int, Any] = {}
    for number in list_ending_signals(checkpoint_signal):
        before[number] = signal.signal(number, stop)
    saving = find_signal(checkpoint_signal)
    before[saving] = signal.signal(saving, save)
    try:
        yield
    except WorkerLost:
        # keep ignoring SIGTERM: the launcher will send it, and it would end this process before it prints its
        # message
        before.clear()
        raise
    finally:
        for ended, handler in before.items():
            signal.signal(ended, handler)


def _do_nothing(number: int, _: FrameType | None) -> None:
    pass
