"""Base class of the collectives, through which the workers of a run exchange data. It serves a single worker.

There are two subclasses for several workers. One uses torch.distributed with the device's backend (gloo, NCCL
or HCCL), for workers that torchrun or poprun started. The other uses Horovod, for workers that horovodrun
started. They are imported only when they are needed.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from trainer.devices.device import Device
from trainer.errors import StopRequested


class Stopping:
    """Object that makes all workers stop, or save a checkpoint, at the same point after one of them has
    received a signal.

    This class is for a single worker, which stops or saves at its next check.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_save_asked = False

    asked_at: float | None = None
    """Time at which the workers were asked to stop, by this machine's monotonic clock. None if they were not.
    """
    is_asked_here: bool = False
    """True if this process itself was asked to stop. False if it heard of the request from another worker."""
    has_stopped: bool = False
    """True after ``check`` has raised StopRequested."""

    def request(self) -> None:
        """Ask all workers to stop. A signal handler may call this, because it takes no lock."""
        self.asked_at = self.asked_at or time.monotonic()
        self.is_asked_here = True
        self._is_asked = True

    def request_save(self) -> None:
        """Ask all workers to save a checkpoint after an update and go on. A signal handler may call this."""
        self._is_save_asked = True

    def check(self, *, exchanges: bool) -> None:
        """Raise StopRequested if the workers have agreed to stop here.

        Every worker must make the same sequence of checks.
        exchanges: True if this worker will exchange data before its next check. Then either all workers must
        reach that exchange or none.
        """
        if self._is_asked:
            self.has_stopped = True
            raise StopRequested

    def take_save_request(self) -> bool:
        """Return True if the workers have agreed to save a checkpoint now. Later calls return False until the
        next request.

        All workers get True after the same update. Call this between two updates, after a check with
        ``exchanges=True``.
        """
        is_asked, self._is_save_asked = self._is_save_asked, False
        return is_asked


class Collective:
    """The communication with all workers of a run, as seen from one of them.

    This class is for a single worker: it returns values unchanged, and all other calls do nothing. All
    workers must make the same calls in the same order, with tensors of the same shapes. If another worker has
    died or no longer responds, every call except ``close`` soon raises WorkerLost, which names its rank.
    rank, size, local_rank: this worker's rank, the number of workers, and its rank among the workers of its
    machine.
    stopping: agreement of the workers on where to stop. Its messages do not use the calls below.
    """

    name = "single"
    rank, size, local_rank = 0, 1, 0

    @staticmethod
    def check(device: Device) -> None:
        """Raise SettingsError if the collective's library is not installed, or does not work with the
        device.
        """

    def __init__(self, device: Device) -> None:
        """Create the collective.

        device: the device that has the tensors to exchange.
        """
        self.stopping = Stopping()

    def broadcast(self, tensors: Iterable[torch.Tensor], source: int = 0) -> None:
        """Overwrite the tensors on all workers with the tensors of rank ``source``, bit for bit."""

    def broadcast_object(self, value: Any) -> Any:
        """Return rank 0's value on all workers. The values of other workers are ignored.

        value: anything that JSON can represent.
        """
        return self.gather(value if self.rank == 0 else None)[0]

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means over the workers.

        dtype: type in which the tensors are summed. None: the type of the tensors.
        """

    def start_average(
        self, flat: torch.Tensor, name: str, dtype: torch.dtype | None = None
    ) -> Callable[[], None]:
        """Start to overwrite a tensor with its mean over the workers. Return a function that waits for the
        result.

        The tensor must not be used before that function has returned.
        flat: tensor with one dimension.
        name: name of this exchange, unlike the names of all others that are not finished.
        dtype: type in which the tensors are summed. None: the type of the tensor.
        """
        return lambda: None

    def gather(self, value: Any) -> list[Any]:
        """Return a list of the workers' values, by rank.

        value: anything that JSON can represent.
        """
        return [value]

    def barrier(self) -> None:
        """Wait until every worker has called this."""
        self.gather(None)

    def naming_lost_workers(self) -> AbstractContextManager[None]:
        """Return a context manager for exchanges that do not go through this class.

        If such an exchange fails because a worker was lost, the context raises WorkerLost instead of the
        library's error.
        """
        return nullcontext()

    def close(self) -> None:
        """Leave the group of workers, after the last exchange. This is not necessary after an error."""
