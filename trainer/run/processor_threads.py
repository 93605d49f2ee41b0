"""The number of threads with which a processor trains a model, and a warning where the processor is busy.

PyTorch uses a thread for each core of the machine. Within each operation, the threads wait for each other. In
a tiny model, an operation takes less time than such a wait if other programs use some of the cores. Then one
thread is faster than two (189 to 344 instead of 8 to 39 sequences per second were seen). So a run takes only
as many threads as the work of its micro-batches can occupy.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from bertdata.io.process_pool import count_available_cores
from trainer.config.model import ModelConfig
from trainer.devices.choice import PROCESSOR
from trainer.devices.device import Device
from trainer.model.bert import PASSES
from trainer.plugins import find
from trainer.update.worker import Runtime
from trainer.workers.launchers import DEFAULT_THREADS

WORK_OF_THREAD = 1e9
"""Operations of a layer, in the forward and backward pass of a micro-batch, that occupy one thread.

These are about 25 ms of a core. They are divided into some sixty operations of PyTorch, after each of which
the threads wait for each other.
"""

LEAST_SHARED_WORK = 3e9
"""Operations of a layer, counted in the same way, below which a single thread is used.

A second thread would save little on an idle machine, and on a busy one it would cost several times as much.
"""

_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables with which users choose the number of threads."""

_SMT_FILE = Path("/sys/devices/system/cpu/smt/active")

_JUDGED_SECONDS = 10.0  # seconds of training before the share of the processor is judged
_MOST_SLOWED = 2.0  # a warning is logged if updates take more than this multiple of their processor time


def count_useful_threads(shape: ModelConfig, rows: int, length: int) -> int:
    """Return the number of threads that the work of a micro-batch can occupy, at least 1.

    shape: settings of the model.
    rows: number of rows of the micro-batch.
    length: largest number of token ids in a row.
    """
    lengths = np.full(rows, length, np.int64)
    # The encoder's ``operations`` counts a multiplication with its addition as one.
    forward = 2 * find("encoder", shape.encoder_name).operations(lengths, shape)
    work = PASSES * forward / shape.num_hidden_layers
    return 1 if work < LEAST_SHARED_WORK else int(work / WORK_OF_THREAD)


@contextmanager
def suit_threads(device: Device, shape: ModelConfig, rows: int, length: int) -> Iterator[str]:
    """Use no more threads within this context than the work of a micro-batch can occupy.

    Yields a remark about the number of threads for the log, or "" if the number has not changed. It does not
    change on an accelerator, or if the user has chosen it. The same configuration always gets the same number
    on the same machine, so that a resumed run computes the same bits.
    shape, rows, length: as in ``count_useful_threads``.
    """
    before = torch.get_num_threads()
    useful = min(before, count_useful_threads(shape, rows, length))
    if device.name != PROCESSOR or useful == before or is_chosen_by_user(before):
        yield ""
        return
    torch.set_num_threads(useful)
    try:
        yield f" (of {before}; micro-batches are small; OMP_NUM_THREADS overrides)"
    finally:
        torch.set_num_threads(before)


def is_chosen_by_user(threads: int) -> bool:
    """Return whether the user has chosen the number of PyTorch's threads.

    The user does so with an environment variable, or by calling ``torch.set_num_threads``.
    threads: the present number of threads.
    """
    if DEFAULT_THREADS not in os.environ:
        if any(os.environ.get(name) for name in _VARIABLES):
            return True
        return threads not in _list_default_threads()
    return str(threads) != os.environ[DEFAULT_THREADS]


def _list_default_threads() -> list[int]:
    """Return the numbers of threads that PyTorch may use without a user's choice.

    That is one thread for each core. If a core runs two threads at once, PyTorch may count such cores once.
    """
    cores = count_available_cores()
    try:
        has_pairs = _SMT_FILE.read_text(encoding="ascii").strip() == "1"
    except OSError:
        has_pairs = False
    return [cores, cores // 2] if has_pairs else [cores]


class BusyProcessorWatch:
    """Object that compares the time of updates with the time in which the processor worked on them.

    Both times are those of the main thread, which takes part in all operations. Other programs that use the
    cores make the first time longer than the second. The first update is not counted, because the main thread
    then also waits for the first batch, which may take long to read.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # With several workers, the main thread also waits for the other workers.
        is_alone = runtime.collective.size == 1
        self._is_watching = is_alone and runtime.device.name == PROCESSOR
        self._is_first = True
        self._seconds = self._processor_seconds = 0.0
        self.restart()

    def restart(self) -> None:
        """Start measuring now, so that the time of a checkpoint or an evaluation does not count."""
        self._since = time.thread_time()

    def add(self, seconds: float) -> None:
        """Count the updates since the last restart, and log a warning, only once, if they took too long.

        seconds: time of the updates, without waiting for data.
        """
        is_first, self._is_first = self._is_first, False
        if is_first or not self._is_watching:
            return
        self._seconds += seconds
        self._processor_seconds += time.thread_time() - self._since
        slowed = self._seconds / max(self._processor_seconds, 1e-6)
        if self._seconds < _JUDGED_SECONDS or slowed < _MOST_SLOWED:
            return
        self._is_watching = False
        remedy = "end some of them, or give this run cores of its own"
        if torch.get_num_threads() > 1:
            remedy = "OMP_NUM_THREADS=1 makes the updates faster as long as they do"
        self._runtime.log(
            f"warning: updates take {slowed:.1f} times as long as the processor works on them, because other "
            f"programs use its cores; {remedy}"
        )
