"""Workers that horovodrun started."""

import os
from collections.abc import Callable

import torch

from bertdata.errors import MissingExtraError, SettingsError
from trainer.collectives.workers import Workers
from trainer.devices import Device


class Horovod(Workers):
    """Horovod's operations. Not its DistributedOptimizer: accumulation and clipping are the loop's."""

    name = "horovod"

    def __init__(self, device: Device, patience: float) -> None:
        if device.process_group not in ("gloo", "nccl"):
            raise SettingsError(f"device {device.name!r}: Horovod does not work with it; use torchrun")
        try:
            import horovod.torch
        except ImportError as error:
            raise MissingExtraError(f"horovod is not installed ({error}); run make horovod") from None
        self._horovod = horovod.torch
        # Buckets are made here; Horovod would join them as they happen to come, in another order each run.
        os.environ.setdefault("HOROVOD_FUSION_THRESHOLD", "0")
        self._horovod.init()
        super().__init__(self._horovod.rank(), self._horovod.size(), device)
        self.local_rank = self._horovod.local_rank()
        self.watch(os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR", "localhost"), patience)

    def _broadcast(self, flat: torch.Tensor) -> None:
        near = self._near(flat)
        self._horovod.broadcast_(near, root_rank=0, name="broadcast")
        if near is not flat:
            flat.copy_(near)

    def _start_sum(self, flat: torch.Tensor, number: int) -> Callable[[], object]:
        near = self._near(flat)
        if near.dtype == torch.bfloat16:  # Horovod has it not: rounded alike, sent and added in 32 bits
            near = near.float()
        handle = self._horovod.allreduce_async_(near, op=self._horovod.Sum, name=f"sum.{number}")

        def wait() -> None:
            self._horovod.synchronize(handle)
            if near is not flat:
                flat.copy_(near)

        return wait

    def _gather(self, flat: torch.Tensor) -> list[torch.Tensor]:
        everyones: torch.Tensor = self._horovod.allgather(self._near(flat), name="gather")
        return list(torch.split(everyones, len(flat)))

    def _shut_down(self) -> None:
        self._horovod.shutdown()

    def _near(self, flat: torch.Tensor) -> torch.Tensor:
        """The tensor where this build of Horovod can work on it."""
        return flat if flat.device.type == "cpu" or self._horovod.nccl_built() else flat.cpu()
