"""The interface of every collective: communication between the workers of a run.

Implementations: one worker alone, torch.distributed (torchrun, poprun; over gloo, NCCL or HCCL as the device
has it) and Horovod (horovodrun).
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch

from trainer.collectives.stopping import StopAgreement


class Collective(Protocol):
    """All workers, as seen from one of them: ``rank`` of ``size``, ``local_rank`` on its machine.

    ``stopping`` is the workers' agreement to stop; it exchanges nothing through the calls below.
    Every worker must make each call, in the same order, with tensors of the same shapes. Every call but
    close raises WorkerLost, which names ranks, soon after another worker died or stopped responding.
    """

    name: str
    rank: int
    size: int
    local_rank: int
    stopping: StopAgreement

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        """Overwrite the tensors with those of rank 0, bit for bit."""

    def broadcast_object(self, value: Any) -> Any:
        """Rank 0's value, which must be valid JSON; the other workers' values are ignored."""

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means over the workers; dtype: the type to add up in."""

    def start_average(
        self, flat: torch.Tensor, name: str, dtype: torch.dtype | None = None
    ) -> Callable[[], None]:
        """Start to overwrite the tensor with its mean over the workers; returns a function that waits for it.

        Until then the tensor must not be used. name: unique among the averages under way.
        """

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        """The sums over the workers, the same bits on each."""

    def gather(self, value: Any) -> list[Any]:
        """Every worker's value, by rank; each must be valid JSON."""

    def barrier(self) -> None:
        """Return when every worker has called this."""

    def naming_lost_workers(self) -> AbstractContextManager[None]:
        """The context of exchanges between workers by other means: WorkerLost in place of their errors."""
        return nullcontext()

    def close(self) -> None:
        """Leave the group after the last call; not needed after a failure."""


class Averaging(Protocol):
    """Workers that average tensors: all of them, or some."""

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        """Overwrite the tensors with their means, as Collective.average does."""


def force_weight_sync(
    collective: Averaging, parameters: Iterable[torch.Tensor], always: bool = False
) -> None:
    """Average the trainable parameters over the workers, always or if FORCE_WEIGHT_SYNC is 1 or true."""
    if always or os.environ.get("FORCE_WEIGHT_SYNC", "").lower() in ("1", "true"):
        collective.average(parameter for parameter in parameters if parameter.requires_grad)
