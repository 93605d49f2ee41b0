"""Workers of Habana's demo_bert.py for TensorFlow: those of one host, times the hosts."""

import os
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from trainer.collectives.launchers import find_rank


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Workers that the program counts on, and those that are started.

    counted: the number that batches and rate are divided by. keys: device, world_size and dist.
    horovod: -v is given. warnings: what is left to the person.
    """

    counted: int
    horovod: bool
    keys: dict[str, Any]
    warnings: list[str]


def find_workers(given: Given) -> Workers:
    """The workers of the command line and of MULTI_HLS_IPS, or with Kubernetes those of mpirun."""
    each = given["use_horovod"]
    horovod = each is not None
    if horovod and each < 1:
        raise UsageError(f"--use_horovod is {each}, expected 1 worker or more")
    warnings = list[str]()
    hosts = len([host for host in os.environ.get("MULTI_HLS_IPS", "").split(",") if host.strip()])
    if given.values.get("kubernetes_run"):
        counted, started, local = (each or 1), find_rank()[1] if horovod else 1, False
        if started > counted:
            warnings.append(
                f"the program divides the update by {counted}, not by the {started} workers of mpirun"
            )
    else:
        counted = (each or 1) * (max(1, hosts) if horovod else 1)
        started, local = counted, hosts <= 1
        if horovod and hosts > 1:
            warnings.append(f"start {each} workers on each of {hosts} hosts, by mpirun or torchrun")
    keys = {"device": "hpu", "world_size": started, "dist": local and started > 1}
    return Workers(counted=counted, horovod=horovod, keys=keys, warnings=warnings)
