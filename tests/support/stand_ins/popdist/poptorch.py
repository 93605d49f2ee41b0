"""PopTorch options that know the replicas of this and the other processes.

Setters that popdist forbids raise errors.
"""

from typing import NoReturn

import poptorch
from recording import call

import popdist


class Options(poptorch.Options):
    def __init__(self, ipus_per_replica: int | None = None) -> None:
        call("popdist.poptorch.Options", ipus_per_replica=ipus_per_replica)
        super().__init__()
        self.replicas, self.processes = popdist.getNumLocalReplicas(), popdist.getNumInstances()

    def replicationFactor(self, replication_factor: int) -> NoReturn:
        raise RuntimeError("Cannot call `replicationFactor` with popdist.poptorch.Options")
