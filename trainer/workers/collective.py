"""The base of every collective (communication between the workers of a run): one worker alone.

For several workers there are torch.distributed (torchrun, poprun; over gloo, NCCL or HCCL as the device has
it) and Horovod (horovodrun); they are imported where they are asked for.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from trainer.devices.device import Device
from trainer.errors import StopRequested


class Stopping:
    """What all workers agree on after a signal: where they stop, and where they save and go on.

    This is a worker alone, which stops or saves at its next check.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_save_asked = False

    def request(self) -> None:
        """Ask all workers to stop. A signal handler may call this, because it takes no lock."""
        self._is_asked = True

    def request_save(self) -> None:
        """Ask all workers to save after an update and go on. A signal handler may call this."""
        self._is_save_asked = True

    def check(self, *, exchanges: bool) -> None:
        """Raise StopRequested if the workers agreed to stop here.

        exchanges: before the next check this worker calls the collective, so that all workers must come
        as far, or none. Every worker must pass the same sequence of such checks.
        """
        if self._is_asked:
            raise StopRequested

    def takes_save(self) -> bool:
        """Return True, once for each agreed save, after the check from which on all workers save.

        To be called after a check that exchanges, between two updates.
        """
        is_asked, self._is_save_asked = self._is_save_asked, False
        return is_asked


class Collective:
    """All workers, as seen from one of them: ``rank`` of ``size``, ``local_rank`` on its machine.

    This is a worker alone: values are returned as they are, all other calls do nothing.
    ``stopping`` exchanges nothing through the calls below.
    Every worker must make each call, in the same order, with tensors of the same shapes. Every call but
    close raises WorkerLost, which names ranks, soon after another worker died or stopped responding.
    """

    name = "single"
    rank, size, local_rank = 0, 1, 0

    @staticmethod
    def check(device: Device) -> None:
        """SettingsError where the collective does not work with the device, or is not there."""

    def __init__(self, device: Device) -> None:
        """device: the one that exchanged tensors are on."""
        self.stopping = Stopping()

    def broadcast(self, tensors: Iterable[torch.Tensor], source: int = 0) -> None:
        """Overwrite the tensors with those of rank ``source``, bit for bit."""

    def broadcast_object(self, value: Any) -> Any:
        """Rank 0's value, which must be valid JSON. The other workers' values are ignored."""
        return self.gather(value if self.rank == 0 else None)[0]

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means over the workers. dtype: the type to add up in."""

    def start_average(
        self, flat: torch.Tensor, name: str, dtype: torch.dtype | None = None
    ) -> Callable[[], None]:
        """Start to overwrite the tensor with its mean over the workers. Returns a function that waits for it.

        Until then the tensor must not be used. name: unique among the averages under way.
        """
        return lambda: None

    def gather(self, value: Any) -> list[Any]:
        """Every worker's value, by rank. Each must be valid JSON."""
        return [value]

    def barrier(self) -> None:
        """Return when every worker has called this."""
        self.gather(None)

    def naming_lost_workers(self) -> AbstractContextManager[None]:
        """The context of exchanges between workers by other means: WorkerLost in place of their errors."""
        return nullcontext()

    def close(self) -> None:
        """Leave the group after the last call. Not needed after a failure."""
