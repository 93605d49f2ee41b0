"""The bandwidth between devices: what is averaged, how it is timed, and on real workers."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support.launching import ROOT, launch
from trainer.collectives.single import Single
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.strategies.split.bandwidth import BUCKETS, REPETITIONS, measure_bandwidth

WORKER = ROOT / "tests" / "support" / "collective_worker.py"


class Four(Single):
    """Rank 0 of four workers, of which the last one is three times as slow."""

    size = 4

    def __init__(self, device: Cpu) -> None:
        super().__init__(device)
        self.calls: list[Any] = []

    def barrier(self) -> None:
        self.calls.append("barrier")

    def gather(self, value: float) -> list[float]:
        return [value, value, value, 3 * value]

    def start_average(self, flat: Tensor, name: str, dtype: torch.dtype | None = None) -> Callable[[], None]:
        self.calls.append((name, flat.numel(), dtype))
        return lambda: self.calls.append("waited")


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_full_buckets_are_averaged_and_the_slowest_worker_counts(dtype):
    device = Cpu(Config.of())
    device.bucket_mb = 1
    workers = Four(device)
    times = iter([0.0, 9.0, 10.0, 12.0, 20.0, 22.0, 30.0, 32.0, 40.0, 40.5])  # starts and ends
    found = measure_bandwidth(device, workers, dtype, lambda: next(times))
    assert next(times, None) is None
    values = 2**20 // 4
    once = [(f"bucket.{number}", values, dtype) for number in (1, 0)] + ["waited", "waited"]
    assert workers.calls == once + ["barrier", *once] * REPETITIONS
    assert found == pytest.approx(2 * 3 / 4 * BUCKETS * 2**20 / (3 * 2.0))


def test_two_workers_find_one_number(tmp_path):
    outcome = launch("torchrun", 2, WORKER, "bandwidth", tmp_path)
    assert outcome.status == 0, outcome.err
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert all(0 < found < math.inf for found in first)
