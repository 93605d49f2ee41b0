"""The signals of a training: those that end it with a checkpoint, and the one that asks for a checkpoint.

The checkpoint signal is USR1 unless ``--checkpoint-signal`` names another. All others that schedulers and
terminals send (Slurm, Grid Engine and LSF: TERM, USR2, XCPU; a lost terminal: HUP) end the training as Ctrl-C
does, with a checkpoint. SIGQUIT is left for emergencies: it ends the process at once.
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
"""The signals that end a training, if they do not ask for a checkpoint."""


def number_of(name: str) -> signal.Signals:
    """The signal of that name, which is written without SIG."""
    return signal.Signals[f"SIG{name}"]


def ending_signals(checkpoint_signal: str) -> list[signal.Signals]:
    """The signals that end a training whose checkpoint signal is this.

    HUP, which this process ignores under nohup, stays ignored, and so do USR1, USR2 and XCPU.
    """
    found = [number_of(name) for name in ENDING_SIGNALS]
    always = (signal.SIGTERM, signal.SIGINT)
    return [
        number
        for number in found
        if number != number_of(checkpoint_signal)
        and (number in always or signal.getsignal(number) is not signal.SIG_IGN)
    ]


@contextmanager
def bearing_checkpoint_signals() -> Iterator[None]:
    """Outlive the checkpoint signal in the block where no training is under way: before it, between two."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number_of(name): signal.getsignal(number_of(name)) for name in CHECKPOINT_SIGNALS}
    bear(CHECKPOINT_SIGNALS[0])
    try:
        yield
    finally:
        for ended, handler in before.items():
            signal.signal(ended, handler)


def bear(checkpoint_signal: str) -> None:
    """Let the checkpoint signal do nothing until a training begins."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number_of(checkpoint_signal), _do_nothing)


@contextmanager
def training_signals(stopping: "Stopping", checkpoint_signal: str) -> Iterator[None]:
    """Ask all workers to stop, or to save, on signals. A second Ctrl-C interrupts at once."""

    def stop(number: int, _: FrameType | None) -> None:
        stopping.request()
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def save(number: int, _: FrameType | None) -> None:
        stopping.request_save()

    before: dict[int, Any] = {}
    for number in ending_signals(checkpoint_signal):
        before[number] = signal.signal(number, stop)
    saving = number_of(checkpoint_signal)
    before[saving] = signal.signal(saving, save)
    try:
        yield
    except WorkerLost:
        before.clear()  # keep ignoring SIGTERM: the launcher's must not end this process before the message
        raise
    finally:
        for ended, handler in before.items():
            signal.signal(ended, handler)


def _do_nothing(number: int, _: FrameType | None) -> None:
    pass
