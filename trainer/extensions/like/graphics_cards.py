"""The number of this machine's NVIDIA GPUs, found without torch."""

import os
from pathlib import Path


def count_gpus(devices: Path = Path("/dev")) -> int:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, of those that the driver shows as /dev/nvidia0 and so on."""
    there = len(list(devices.glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (
        there if visible is None else min(there, len([name for name in visible.split(",") if name.strip()]))
    )
