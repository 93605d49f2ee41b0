"""A stand-in for popdist, the library that tells a process what poprun has started (Poplar SDK 3.4).

The real poprun starts processes through Open MPI and sets these variables. Here the test sets them.
"""

import os

from recording import call

_TOTAL = "POPDIST_NUM_TOTAL_REPLICAS"


def isPopdistEnvSet() -> bool:
    return _TOTAL in os.environ


def init() -> None:
    call("popdist.init")


def getNumTotalReplicas() -> int:
    return int(os.environ.get(_TOTAL, "1"))


def getNumLocalReplicas() -> int:
    return int(os.environ.get("POPDIST_NUM_LOCAL_REPLICAS", "1"))


def getNumIpusPerReplica() -> int:
    return int(os.environ.get("POPDIST_NUM_IPUS_PER_REPLICA", "1"))


def getNumInstances() -> int:
    return getNumTotalReplicas() // getNumLocalReplicas()


def getInstanceIndex() -> int:
    return int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
