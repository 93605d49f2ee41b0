"""The collective (communication between workers) for workers that Graphcore's poprun started through Open
MPI.
"""

import os

from trainer.devices.device import Device
from trainer.workers.torch_distributed import TorchDistributed


class Poprun(TorchDistributed):
    """A collective that uses torch.distributed, with rank and number of workers from Open MPI's variables.

    It serves only the processes on the hosts. Gradients go directly from IPU to IPU. If there are several
    hosts, the user must set MASTER_ADDR to the address of rank 0.
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
