"""Measurement of the bandwidth between the devices of a run."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.devices.device import Device
from trainer.splitting.plan.profile import REPETITIONS, Clock
from trainer.splitting.plan.rates import ShardingRate
from trainer.splitting.sharding import make_copies_mesh, make_sharding_policy
from trainer.update.averaging import GradientBuckets
from trainer.update.worker import hold_whole_model
from trainer.workers.collective import Collective

BUCKETS = 2
"""Number of full buckets (tensors that collect gradients) that are averaged in a measurement.

With two buckets, as in training, one is copied while the other is sent.
"""

SHARDED = 2
"""Number of equal sharded weights in a measurement.

With two weights, as in training, one is gathered while the other is used.
"""


def measure_bandwidth(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Clock = time.perf_counter,
) -> float:
    """Return the number of bytes of gradients that each worker sends per second, while it receives as many.

    Averages of gradients are timed as ``Strategy`` makes them, including the division and the copies. With n
    workers, each worker sends 2 (n - 1) / n of its gradients. The average is repeated several times. The
    shortest time of each worker is taken, and the slowest worker's time gives the result. All workers (two or
    more) must call this together, and all get the same number.
    dtype: type in which gradients are added up. None means the type of the gradients.
    clock: function that returns the time in seconds.
    """
    values = device.bucket_mb * 2**20 // 4  # number of fp32 values in a full bucket
    weights = [torch.zeros(values, device=device.torch_device, requires_grad=True) for _ in range(BUCKETS)]
    buckets = GradientBuckets(weights, workers, device.bucket_mb, dtype)
    (seconds,) = _time_repeatedly(workers, lambda: _time_average(buckets, weights, device, clock))
    return 2 * (workers.size - 1) / workers.size * 4 * values * BUCKETS / seconds


def measure_sharding(
    device: Device,
    workers: Collective,
    dtype: torch.dtype | None = None,
    clock: Clock = time.perf_counter,
) -> ShardingRate:
    """Return the rates at which FSDP2 gathers weights and scatters gradients among all workers.

    Forward and backward passes are timed, through modules that each have a weight and compute almost nothing.
    The shortest time of each worker is taken, and the slowest worker's time gives the result. All workers
    (two or more) must call this together, and all get the same rates.
    dtype: type in which gradients are added up. None means the type of the gradients.
    clock: function that returns the time in seconds.
    """
    with _open_sharded_modules(device, workers, dtype) as model:
        forward, backward = _time_repeatedly(workers, lambda: _time_pass(model, device, clock))
    moved = (workers.size - 1) / workers.size * device.bucket_mb * 2**20 * SHARDED
    return ShardingRate(forward=moved / forward, backward=2 * moved / backward)


def _time_repeatedly(workers: Collective, timed: Callable[[], Sequence[float]]) -> list[float]:
    """Run the work several times and return its shortest times, from the worker on which they are longest.

    timed: function that does the work once and returns one or more times. Each of these times
        is treated separately.
    """
    timed()  # The first call is not counted, because it also connects the workers.
    times = []
    for _ in range(REPETITIONS):
        workers.barrier()
        times.append(timed())
    found = workers.gather([min(one) for one in zip(*times, strict=True)])
    return [max(one) for one in zip(*found, strict=True)]


class _WeightModule(nn.Module):
    """Module with a large weight.

    Its passes use only one value of the weight, so they take almost no computing time.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        rows = torch.zeros(device.bucket_mb * 2**8, 2**10, device=device.torch_device)
        self.weight = nn.Parameter(rows)

    def forward(self, given: Tensor) -> Tensor:
        return given + self.weight[0, 0]


@contextmanager
def _open_sharded_modules(
    device: Device, workers: Collective, dtype: torch.dtype | None
) -> Iterator[nn.Sequential]:
    """Return a context with sharded modules. When the context ends, their process group is destroyed.

    dtype: type in which gradients are added up. None means the type of the gradients.
    """
    from torch.distributed.fsdp import fully_shard

    mesh = make_copies_mesh(device, workers, hold_whole_model(workers))
    model = nn.Sequential(*(_WeightModule(device) for _ in range(SHARDED)))
    for module in (*model, model):
        fully_shard(module, mesh=mesh, mp_policy=make_sharding_policy(None, dtype))
    yield model
    dist.destroy_process_group(mesh.get_group())


def _time_pass(model: nn.Sequential, device: Device, clock: Clock) -> Sequence[float]:
    """Return the seconds that a forward pass and a backward pass take."""
    given = torch.zeros(1, device=device.torch_device, requires_grad=True)
    start = clock()
    result = model(given)
    device.to_host(result)
    middle = clock()
    result.backward()
    assert given.grad is not None
    device.to_host(given.grad)
    return middle - start, clock() - middle


def _time_average(
    buckets: GradientBuckets, weights: Sequence[Tensor], device: Device, clock: Clock
) -> Sequence[float]:
    """Return the seconds that it takes to average gradients of zeros over the workers."""
    start = clock()
    buckets.reset()
    with buckets.averaging():
        pass
    for weight in weights:
        assert weight.grad is not None
        device.to_host(weight.grad[:1])
    return [clock() - start]
