"""Device and workers of MLPerf's run_pretraining.py, and the division of its batches among them."""

import os
import re
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError


def machine_keys(given: Given) -> dict[str, Any]:
    """The keys of device and workers: one worker for each GPU or core."""
    if given["num_gpus"] < 0:
        raise UsageError("`num_gpus` can not be negative.")
    if given["use_tpu"] and given["num_tpu_cores"] < 1:
        raise UsageError(f"num_tpu_cores is {given['num_tpu_cores']}, expected 1 or more")
    device = "xla" if given["use_tpu"] else "cuda" if given["num_gpus"] else "cpu"
    count = given["num_tpu_cores"] if given["use_tpu"] else max(1, given["num_gpus"])
    compiles = re.search(r"--tf_xla_auto_jit=[12]\b", os.environ.get("TF_XLA_FLAGS", ""))
    return {
        "device": device,
        "world_size": count,
        "dist": count > 1,
        "precision": "fp32",
        "compile": compiles is not None,
        "unverified": True,
        "gelu": "tanh",
    }


def of_replica(given: Given, name: str, count: int) -> int:
    """The part of a total batch that one of ``count`` replicas has."""
    total: int = given[name]
    if total < 1:
        raise UsageError(f"{name} is {total}, expected 1 or more")
    if total % count and given["use_tpu"]:
        kind = name.partition("_")[0]
        raise UsageError(f"{kind} batch size {total} must be divisible by number of replicas {count}")
    if total % count:
        raise UsageError(
            "When running with multiple GPUs, batch size must be a multiple of the number of available GPUs. "
            f"Found {count} GPUs with a batch size of {total}; try --{name}={total - total % count} instead."
        )
    return total // count
