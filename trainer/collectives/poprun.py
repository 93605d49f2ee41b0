"""Workers that Graphcore's poprun started, through Open MPI."""

import os

from trainer.collectives.torch_distributed import TorchDistributed
from trainer.devices import Device


class Poprun(TorchDistributed):
    """torch.distributed under Open MPI's names; on several hosts MASTER_ADDR must say where rank 0 is.

    This is how the processes talk. Gradients go from IPU to IPU without it.
    """

    name = "poprun"

    def __init__(self, device: Device) -> None:
        given, size = os.environ, os.environ["OMPI_COMM_WORLD_SIZE"]
        if given.get("OMPI_COMM_WORLD_LOCAL_SIZE") == size:
            given.setdefault("MASTER_ADDR", "127.0.0.1")
        given.setdefault("MASTER_PORT", "29500")
        given.update(RANK=given["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=size)
        super().__init__(device)
