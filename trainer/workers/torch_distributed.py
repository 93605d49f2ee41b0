"""The collective (communication between workers) for torchrun, and for launchers that set the same
variables.
"""

import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from bertdata.errors import SettingsError
from trainer.devices.device import Device
from trainer.errors import WorkerLost
from trainer.workers.meeting import compare_devices, meet_workers
from trainer.workers.network import set_gloo_interface
from trainer.workers.worker_group import WorkerGroup


class TorchDistributed(WorkerGroup):
    """A collective that uses torch.distributed with the device's backend."""

    name = "torch_distributed"

    def __init__(self, device: Device) -> None:
        def meet_with_device() -> tuple[Store, int, int]:
            store, rank, size = meet_workers()
            set_gloo_interface(os.environ["MASTER_ADDR"])
            compare_devices(store, rank, size, device.name)
            return store, rank, size

        try:
            device.join(meet_with_device)
        except ValueError as error:  # torch raises this for environment variables that are missing or wrong
            raise SettingsError(f"torch.distributed: {error}") from None
        except RuntimeError as error:
            raise WorkerLost(f"the workers could not connect: {str(error).splitlines()[0]}") from error
        super().__init__(dist.get_rank(), dist.get_world_size(), device, os.environ["MASTER_ADDR"])

    def _start_sum(self, tensor: torch.Tensor, name: str) -> Callable[[], torch.Tensor]:
        work = dist.all_reduce(tensor, async_op=True)
        assert work is not None  # it is None only in a process that does not belong to the group

        def wait() -> torch.Tensor:
            work.wait()
            return tensor

        return wait

    def close(self) -> None:
        super().close()
        dist.destroy_process_group()
