"""The collective for workers that Graphcore's poprun started through Open MPI."""

import os

from trainer.devices.device import Device
from trainer.workers.torch_distributed import TorchDistributed


class Poprun(TorchDistributed):
    """Collective that uses torch.distributed, with rank and size from Open MPI's environment variables. On
    several hosts, the user must set MASTER_ADDR to rank 0's address.

    Only the host processes communicate by this collective. Gradients go directly from IPU to IPU.
    """

    name = "poprun"

    def __init__(self, device: Device) -> None:
        given = os.environ
        size = os.environ["OMPI_COMM_WORLD_SIZE"]
        if given.get("OMPI_COMM_WORLD_LOCAL_SIZE") == size:
            given.setdefault("MASTER_ADDR", "127.0.0.1")
        given.setdefault("MASTER_PORT", "29500")
        given.update(RANK=given["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=size)
        super().__init__(device)
