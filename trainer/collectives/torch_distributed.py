"""Workers that torchrun started, or anything else that sets its environment variables."""

import os
from collections.abc import Callable

import torch
import torch.distributed as dist

from bertdata.errors import SettingsError
from trainer.collectives import find_local_rank
from trainer.collectives.workers import Workers
from trainer.devices import Device
from trainer.errors import WorkerLost


class TorchDistributed(Workers):
    """torch.distributed, through what the device communicates with."""

    name = "torch_distributed"

    def __init__(self, device: Device, patience: float) -> None:
        place = device.torch_device
        try:
            dist.init_process_group(
                device.process_group, device_id=place if place.index is not None else None
            )
        except ValueError as error:  # a variable is missing or no number
            raise SettingsError(f"torch.distributed: {error}") from None
        except RuntimeError as error:
            raise WorkerLost(f"the workers did not meet: {str(error).splitlines()[0]}") from error
        super().__init__(dist.get_rank(), dist.get_world_size(), device)
        self.local_rank = find_local_rank()
        self.watch(os.environ["MASTER_ADDR"], patience)

    def _broadcast(self, flat: torch.Tensor) -> None:
        dist.broadcast(flat, src=0)

    def _start_sum(self, flat: torch.Tensor, number: int) -> Callable[[], object]:
        work = dist.all_reduce(flat, async_op=True)
        assert work is not None  # this process is of the group
        wait: Callable[[], object] = work.wait
        return wait

    def _gather(self, flat: torch.Tensor) -> list[torch.Tensor]:
        everyones = [torch.empty_like(flat) for _ in range(self.size)]
        dist.all_gather(everyones, flat)
        return everyones

    def _shut_down(self) -> None:
        dist.destroy_process_group()
