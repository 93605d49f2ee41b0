"""The bandwidths between devices: what is moved, how it is timed, and on real workers."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support.launching import ROOT, launch
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.splitting.plan import bandwidth
from trainer.splitting.plan.bandwidth import (
    BUCKETS,
    REPETITIONS,
    SHARDED,
    measure_bandwidth,
    measure_sharding,
)
from trainer.splitting.plan.rates import ShardingRate
from trainer.workers.collective import Collective

WORKER = ROOT / "tests" / "support" / "bandwidth_worker.py"


class Four(Collective):
    """Rank 0 of four workers, of which the last one is three times as slow."""

    size = 4

    def __init__(self, device: Cpu) -> None:
        super().__init__(device)
        self.calls: list[Any] = []

    def barrier(self) -> None:
        self.calls.append("barrier")

    def gather(self, value: Any) -> list[Any]:
        slow = 3 * value if isinstance(value, float) else [3 * one for one in value]
        return [value, value, value, slow]

    def start_average(self, flat: Tensor, name: str, dtype: torch.dtype | None = None) -> Callable[[], None]:
        self.calls.append((name, flat.numel(), dtype))
        return lambda: self.calls.append("waited")


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_full_buckets_are_averaged_and_the_slowest_worker_counts(dtype):
    device = Cpu(Config.of())
    device.bucket_mb = 1
    workers = Four(device)
    # Starts and ends, first of what connects the workers.
    times = iter([-9.0, -8.9, 0.0, 9.0, 10.0, 12.0, 20.0, 22.0, 30.0, 32.0, 40.0, 40.5])
    found = measure_bandwidth(device, workers, dtype, lambda: next(times))
    assert next(times, None) is None
    values = 2**20 // 4
    once = [(f"bucket.{number}", values, dtype) for number in (1, 0)] + ["waited", "waited"]
    assert workers.calls == once + ["barrier", *once] * REPETITIONS
    assert found == pytest.approx(2 * 3 / 4 * BUCKETS * 2**20 / (3 * 0.5))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[nn.Sequential]:
    """The modules whose passes are timed, which one process keeps whole."""
    made = []

    @contextmanager
    def whole_modules(device: Cpu, workers: Four, dtype: torch.dtype | None) -> Iterator[nn.Sequential]:
        workers.calls.append(dtype)
        made.append(nn.Sequential(*(bandwidth._WeightModule(device) for _ in range(SHARDED))))
        yield made[-1]

    monkeypatch.setattr(bandwidth, "_open_sharded_modules", whole_modules)
    return made


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_forward_and_backward_passes_of_full_weights_are_timed_apart(modules, dtype):
    device = Cpu(Config.of())
    device.bucket_mb = 1
    workers = Four(device)
    times = iter([0, 50, 90, 100, 101, 105, 200, 201, 204, 300, 302, 306, 400, 402, 406, 500, 502, 505])
    found = measure_sharding(device, workers, dtype, lambda: float(next(times)))
    assert next(times, None) is None
    assert workers.calls == [dtype, *["barrier"] * REPETITIONS]
    moved = 3 / 4 * SHARDED * 2**20
    assert found == ShardingRate(
        forward=pytest.approx(moved / (3 * 1)), backward=pytest.approx(2 * moved / (3 * 3))
    )
    (model,) = modules
    for module in model:
        assert module.weight.numel() * 4 == 2**20
        gradient = module.weight.grad
        assert gradient[0, 0] == gradient.sum() == 1 + REPETITIONS  # of all passes, added up


@pytest.mark.parametrize("measure", ["bandwidth", "sharding"])
def test_two_workers_find_the_same_numbers(tmp_path, measure):
    outcome = launch("torchrun", 2, WORKER, measure, tmp_path)
    assert outcome.status == 0, outcome.err
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    numbers = [number for found in first for number in (found if isinstance(found, list) else [found])]
    assert len(numbers) == (2 if measure == "bandwidth" else 4)
    assert all(0 < number < math.inf for number in numbers)
