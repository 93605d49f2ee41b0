"""Bandwidth between the devices of a run, measured."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.collectives.collective import Collective
from trainer.devices.device import Device
from trainer.extensions.splitting.plan.rates import ShardingRate
from trainer.extensions.splitting.sharding import copies_mesh, sharding_policy
from trainer.update.averaging import GradientBuckets
from trainer.update.strategy import whole

BUCKETS = 2
"""Full buckets of gradients that are averaged: the devices copy one while another is on its way."""

SHARDED = 2
"""Weights of the same size that are sharded: one is gathered while another is in use."""

REPETITIONS = 5


def measure_bandwidth(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Bytes of gradients a second that each worker sends, while it receives as many.

    Measured by averages of gradients as ``Replicated`` makes them, with their division and copies; of n
    workers each sends 2 (n - 1) / n of its gradients. dtype: the type in which they are added up; None:
    their own. The least time of some repetitions counts, on the slowest worker. The same number on all
    workers, which call this together; they are two or more.
    """
    buckets, weights = _make_buckets(device, workers, dtype)
    _average(buckets, weights, device)  # connects the workers
    times = []
    for _ in range(REPETITIONS):
        workers.barrier()
        start = clock()
        _average(buckets, weights, device)
        times.append(clock() - start)
    seconds: float = max(workers.gather(min(times)))
    size = sum(weight.numel() * weight.element_size() for weight in weights)
    return 2 * (workers.size - 1) / workers.size * size / seconds


def measure_sharding(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> ShardingRate:
    """The rates at which FSDP2 gathers weights and scatters gradients among all workers.

    Measured by passes through modules that have a weight each and compute nothing. dtype: as in
    ``measure_bandwidth``, as are repetitions, slowest worker and calls.
    """
    values = device.bucket_mb * 2**20 // 4
    forward, backward = [], []
    with _sharded_modules(device, workers, dtype) as model:
        _pass(model, device, clock)
        for _ in range(REPETITIONS):
            workers.barrier()
            times = _pass(model, device, clock)
            forward.append(times[0])
            backward.append(times[1])
    found = workers.gather([min(forward), min(backward)])
    moved = (workers.size - 1) / workers.size * 4 * values * SHARDED
    return ShardingRate(
        forward=moved / max(one[0] for one in found), backward=2 * moved / max(one[1] for one in found)
    )


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

    mesh = copies_mesh(device, whole(workers))
    model = nn.Sequential(*(_Held(device) for _ in range(SHARDED)))
    for module in (*model, model):
        fully_shard(module, mesh=mesh, mp_policy=sharding_policy(None, dtype))
    yield model
    dist.destroy_process_group(mesh.get_group())


def _pass(model: nn.Sequential, device: Device, clock: Callable[[], float]) -> tuple[float, float]:
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


def _make_buckets(
    device: Device, workers: Collective, dtype: torch.dtype | None
) -> tuple[GradientBuckets, list[torch.Tensor]]:
    """Buckets that are full, and their weights: one in each."""
    values = device.bucket_mb * 2**20 // 4
    weights = [torch.zeros(values, device=device.torch_device, requires_grad=True) for _ in range(BUCKETS)]
    return GradientBuckets(weights, workers, device.bucket_mb, dtype), list(weights)


def _average(buckets: GradientBuckets, weights: list[torch.Tensor], device: Device) -> None:
    """Average gradients of zeros, and wait for the device."""
    buckets.reset()
    with buckets.averaging():
        pass
    for weight in weights:
        assert weight.grad is not None
        device.to_host(weight.grad[:1])
