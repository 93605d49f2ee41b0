"""The signals that concern a training: some end it with a checkpoint, and one only asks for a checkpoint.

The latter is the checkpoint signal, USR1 unless ``--checkpoint-signal`` names another. All other signals that
schedulers and terminals send end the training with a checkpoint, as Ctrl-C does. These are TERM, USR2 and
XCPU from Slurm, Grid Engine and LSF, and HUP from a lost terminal. SIGQUIT is left for emergencies, and ends
the process immediately.
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
    from trainer.workers.collective import Stopping  # this module imports torch

ENDING_SIGNALS = ("TERM", "INT", "HUP", "USR1", "USR2", "XCPU")
"""Signals that end a training, except the one that is chosen as checkpoint signal."""


def find_signal(name: str) -> signal.Signals:
    """Return the signal with this name, which is written without "SIG"."""
    return signal.Signals[f"SIG{name}"]


def list_ending_signals(checkpoint_signal: str) -> list[signal.Signals]:
    """Return the signals that end a training with a checkpoint.

    HUP, USR1, USR2 and XCPU are left out if this process already ignores them, as it ignores HUP under nohup.
    checkpoint_signal: name of the signal that only asks for a checkpoint. It is left out too.
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
    """Ignore checkpoint signals in the block while no training is under way, so that they do not end the
    process.

    Only the signal that is the first checkpoint signal is ignored from the beginning. The trainings in the
    block may handle others. So at the end the handlers of all of them are restored.
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
    """Ignore the checkpoint signal until a training begins."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(find_signal(checkpoint_signal), _do_nothing)


@contextmanager
def handle_training_signals(stopping: "Stopping", checkpoint_signal: str) -> Iterator[None]:
    """Ask all workers to stop, or to save a checkpoint, when a signal arrives in the block.

    A second Ctrl-C interrupts the process immediately. In a thread other than the main thread, where Python
    has no signal handlers, signals keep their effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

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
        # Keep ignoring SIGTERM: the launcher will send it, and it would end this process before it prints its
        # message.
        before.clear()
        raise
    finally:
        for ended, handler in before.items():
            signal.signal(ended, handler)


def _do_nothing(number: int, _: FrameType | None) -> None:
    pass
