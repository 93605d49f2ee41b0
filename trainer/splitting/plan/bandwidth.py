"""Bandwidth between the devices of a run, measured."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.devices.device import Device
from trainer.splitting.plan.profile import REPETITIONS, Clock
from trainer.splitting.plan.rates import ShardingRate
from trainer.splitting.sharding import copies_mesh, sharding_policy
from trainer.update.averaging import GradientBuckets
from trainer.update.worker import whole
from trainer.workers.collective import Collective

BUCKETS = 2
"""Full buckets of gradients that are averaged: the devices copy one while another is on its way."""

SHARDED = 2
"""Weights of the same size that are sharded: one is gathered while another is in use."""


def measure_bandwidth(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Clock = time.perf_counter,
) -> float:
    """Bytes of gradients a second that each worker sends, while it receives as many.

    Measured by averages of gradients as ``Strategy`` makes them, with their division and copies; of n
    workers each sends 2 (n - 1) / n of its gradients. dtype: the type in which they are added up; None:
    their own. The least time of some repetitions counts, on the slowest worker. The same number on all
    workers, which call this together; they are two or more.
    """
    values = device.bucket_mb * 2**20 // 4  # of a full bucket
    weights = [torch.zeros(values, device=device.torch_device, requires_grad=True) for _ in range(BUCKETS)]
    buckets = GradientBuckets(weights, workers, device.bucket_mb, dtype)
    (seconds,) = _least(workers, lambda: _average(buckets, weights, device, clock))
    return 2 * (workers.size - 1) / workers.size * 4 * values * BUCKETS / seconds


def measure_sharding(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Clock = time.perf_counter,
) -> ShardingRate:
    """The rates at which FSDP2 gathers weights and scatters gradients among all workers.

    Measured by passes through modules that have a weight each and compute nothing. dtype: as in
    ``measure_bandwidth``, as are repetitions, slowest worker and calls.
    """
    with _sharded_modules(device, workers, dtype) as model:
        forward, backward = _least(workers, lambda: _pass(model, device, clock))
    moved = (workers.size - 1) / workers.size * device.bucket_mb * 2**20 * SHARDED
    return ShardingRate(forward=moved / forward, backward=2 * moved / backward)


def _least(workers: Collective, timed: Callable[[], Sequence[float]]) -> list[float]:
    """The least of each of the times that repetitions give, on the slowest worker."""
    timed()  # connects the workers
    times = []
    for _ in range(REPETITIONS):
        workers.barrier()
        times.append(timed())
    found = workers.gather([min(one) for one in zip(*times, strict=True)])
    return [max(one) for one in zip(*found, strict=True)]


class _Held(nn.Module):
    """A weight of which a pass reads one value."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        rows = torch.zeros(device.bucket_mb * 2**8, 2**10, device=device.torch_device)
        self.weight = nn.Parameter(rows)

    def forward(self, given: Tensor) -> Tensor:
        return given + self.weight[0, 0]


@contextmanager
def _sharded_modules(
    device: Device, workers: Collective, dtype: torch.dtype | None
) -> Iterator[nn.Sequential]:
    """The modules, whose group of workers ends with the context."""
    from torch.distributed.fsdp import fully_shard

    mesh = copies_mesh(device, workers, whole(workers))
    model = nn.Sequential(*(_Held(device) for _ in range(SHARDED)))
    for module in (*model, model):
        fully_shard(module, mesh=mesh, mp_policy=sharding_policy(None, dtype))
    yield model
    dist.destroy_process_group(mesh.get_group())


def _pass(model: nn.Sequential, device: Device, clock: Clock) -> Sequence[float]:
    """Seconds of a forward and a backward pass."""
    given = torch.zeros(1, device=device.torch_device, requires_grad=True)
    start = clock()
    result = model(given)
    device.to_host(result)
    middle = clock()
    result.backward()
    assert given.grad is not None
    device.to_host(given.grad)
    return middle - start, clock() - middle


def _average(
    buckets: GradientBuckets, weights: Sequence[Tensor], device: Device, clock: Clock
) -> Sequence[float]:
    """Seconds of the averages of gradients of zeros."""
    start = clock()
    buckets.reset()
    with buckets.averaging():
        pass
    for weight in weights:
        assert weight.grad is not None
        device.to_host(weight.grad[:1])
    return [clock() - start]
