"""Program of one worker in test_bandwidth.py. Usage: ``bandwidth_worker.py TASK DIRECTORY``."""

import json
import sys
from pathlib import Path

import torch

from tests.support.collective_worker import MEGABYTES, main
from trainer.config.settings import Config
from trainer.devices.opening import find_device
from trainer.splitting.plan.bandwidth import measure_bandwidth, measure_sharding
from trainer.workers.collective import Collective


def bandwidth(collective: Collective, place: Path) -> None:
    """Measure the bytes per second that the workers can average, in the gradients' type and in 16 bits."""
    device = find_device(Config.of())
    device.bucket_mb = MEGABYTES
    found = [measure_bandwidth(device, collective, dtype) for dtype in (None, torch.bfloat16)]
    (place / f"{collective.rank}.json").write_text(json.dumps(found), encoding="utf-8")


def sharding(collective: Collective, place: Path) -> None:
    """Measure the rates of sharded copies of a model, with gradients summed in fp32 and in 16 bits."""
    device = find_device(Config.of())
    device.bucket_mb = MEGABYTES
    found = [measure_sharding(device, collective, dtype) for dtype in (None, torch.bfloat16)]
    (place / f"{collective.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main({"bandwidth": bandwidth, "sharding": sharding}[sys.argv[1]], *sys.argv[2:]))
