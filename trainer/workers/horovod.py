"""The collective (communication between workers) for workers that horovodrun started."""

import os
import socket
from collections.abc import Callable

import torch

from bertdata.errors import MissingExtraError, SettingsError
from trainer.devices.device import Device
from trainer.workers.worker_group import WorkerGroup

_ADDRESS = "HOROVOD_GLOO_RENDEZVOUS_ADDR"


class Horovod(WorkerGroup):
    """A collective that exchanges tensors by Horovod's all-reduce.

    Horovod's DistributedOptimizer is not used, because the trainer itself accumulates and clips gradients.
    """

    name = "horovod"

    @classmethod
    def check(cls, device: Device) -> None:
        super().check(device)
        if not os.environ.get(_ADDRESS):
            raise SettingsError(
                "horovod: HOROVOD_RANK is set, but not the address of horovodrun's server; start by "
                "horovodrun --gloo, or unset HOROVOD_RANK"
            )

    def __init__(self, device: Device) -> None:
        try:
            import horovod.torch
        except ImportError as error:
            raise MissingExtraError(f"horovod is not installed ({error}); run make horovod") from None
        self._horovod = horovod.torch
        # Keep Horovod from joining tensors, because the trainer already joins them to buckets. Horovod would
        # join them in the order of their arrival, which differs between runs.
        os.environ.setdefault("HOROVOD_FUSION_THRESHOLD", "0")
        self._horovod.init()
        # This connection sends nothing. It only finds out this machine's own address.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((os.environ[_ADDRESS], 9))
            address = probe.getsockname()[0]
        super().__init__(self._horovod.rank(), self._horovod.size(), device, address)

    def _start_sum(self, tensor: torch.Tensor, name: str) -> Callable[[], torch.Tensor]:
        sent = tensor if self._horovod.nccl_built() else tensor.cpu()
        # Horovod cannot exchange bfloat16. So values are rounded to bfloat16, but sent and summed with 32
        # bits.
        if sent.dtype == torch.bfloat16:
            sent = sent.float()
        handle = self._horovod.allreduce_async_(sent, op=self._horovod.Sum, name=name)
        # Convert the sum to the tensor's type, and move it to the tensor's device.
        return lambda: self._horovod.synchronize(handle).to(tensor)
