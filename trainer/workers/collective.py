"""Base class of every collective (communication between the workers of a run), for a single worker.

For several workers, there are two subclasses. One uses torch.distributed, for workers that torchrun or poprun
started, over the device's backend (gloo, NCCL or HCCL). The other uses Horovod, for workers that horovodrun
started. They are imported only if they are used.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from trainer.devices.device import Device
from trainer.errors import StopRequested


class Stopping:
    """Lets all workers stop, or save a checkpoint, at the same place after one of them got a signal.

    This class is for a single worker, which stops or saves at its next check.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_save_asked = False

    def request(self) -> None:
        """Ask all workers to stop. Signal handlers may call this, because it takes no lock."""
        self._is_asked = True

    def request_save(self) -> None:
        """Ask all workers to save after an update and go on. Signal handlers may call this."""
        self._is_save_asked = True

    def check(self, *, exchanges: bool) -> None:
        """Raise StopRequested if the workers have agreed to stop here.

        Every worker must make the same sequence of checks.
        exchanges: this worker will call the collective before its next check, so all workers must get there
        or none.
        """
        if self._is_asked:
            raise StopRequested

    def take_save_request(self) -> bool:
        """Return True if the workers have agreed to save now. Each agreement gives True once.

        All workers get True after the same update.

        Call this between two updates, after a check with ``exchanges=True``.
        """
        is_asked, self._is_save_asked = self._is_save_asked, False
        return is_asked


class Collective:
    """All workers as seen from one of them, with rank ``rank`` of ``size`` and ``local_rank`` on its machine.

    This class is for a single worker: it returns values unchanged, and all other calls do nothing. Every
    worker must make the same calls in the same order, with tensors of the same shapes. Every call except
    ``close`` raises WorkerLost, which names the rank, soon after another worker has died or stopped
    responding.
    stopping: agreement of the workers on where to stop. Its messages are sent separately from the calls
    below.
    """

    name = "single"
    rank, size, local_rank = 0, 1, 0

    @staticmethod
    def check(device: Device) -> None:
        """Raise SettingsError if the collective is not installed or does not work with the device."""

    def __init__(self, device: Device) -> None:
        """device: device of the tensors that are exchanged."""
        self.stopping = Stopping()

    def broadcast(self, tensors: Iterable[torch.Tensor], source: int = 0) -> None:
        """Overwrite the tensors with those of rank ``source``, bit for bit."""

    def broadcast_object(self, value: Any) -> Any:
        """Return rank 0's value, which must be JSON. The values of other workers are ignored."""
        return self.gather(value if self.rank == 0 else None)[0]

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means over the workers.

        dtype: type of the sums. None: the tensors' type.
        """

    def start_average(
        self, flat: torch.Tensor, name: str, dtype: torch.dtype | None = None
    ) -> Callable[[], None]:
        """Start to overwrite a flat tensor with its mean over the workers. Return a function that waits for
        it.

        Do not use the tensor before that function has returned.
        name: must differ from the names of other averages that are not finished.
        """
        return lambda: None

    def gather(self, value: Any) -> list[Any]:
        """Return every worker's value, by rank. Values must be JSON."""
        return [value]

    def barrier(self) -> None:
        """Wait until every worker has called this."""
        self.gather(None)

    def naming_lost_workers(self) -> AbstractContextManager[None]:
        """Return a context manager for exchanges that bypass this class.

        If one of them fails because a worker was lost, the context raises WorkerLost instead.
        """
        return nullcontext()

    def close(self) -> None:
        """Leave the group after the last call. Not needed after a failure."""
