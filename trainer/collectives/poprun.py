"""Workers that Graphcore's poprun started, through Open MPI."""

import os

from bertdata.errors import SettingsError
from trainer.collectives.torch_distributed import TorchDistributed
from trainer.devices import Device

_PORT = "29500"


class Poprun(TorchDistributed):
    """torch.distributed under Open MPI's names. What IPUs say to one another is not its concern."""

    name = "poprun"

    def __init__(self, device: Device) -> None:
        given = os.environ
        if "MASTER_ADDR" not in given:
            if (
                given.get("OMPI_COMM_WORLD_LOCAL_SIZE", given["OMPI_COMM_WORLD_SIZE"])
                != given["OMPI_COMM_WORLD_SIZE"]
            ):
                remedy = "give poprun --mpi-local-args='-x MASTER_ADDR' and set it to the first host"
                raise SettingsError(f"poprun: several hosts, and MASTER_ADDR is not set: {remedy}")
            given["MASTER_ADDR"] = "127.0.0.1"
        given.setdefault("MASTER_PORT", _PORT)
        given["RANK"], given["WORLD_SIZE"] = given["OMPI_COMM_WORLD_RANK"], given["OMPI_COMM_WORLD_SIZE"]
        super().__init__(device)
