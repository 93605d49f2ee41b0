"""Bandwidth between the devices of a run, measured."""

import time
from collections.abc import Callable
from statistics import median

import torch

from trainer.collectives.collective import Collective
from trainer.devices.device import Device
from trainer.strategies.gradient_buckets import GradientBuckets

BUCKETS = 2
"""Full buckets of gradients that are averaged: the devices copy one while another is on its way."""

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
    their own. The median of some repetitions counts, on the slowest worker. The same number on all workers,
    which call this together; they are two or more.
    """
    buckets, weights = _make_buckets(device, workers, dtype)
    _average(buckets, weights, device)  # connects the workers
    times = []
    for _ in range(REPETITIONS):
        workers.barrier()
        start = clock()
        _average(buckets, weights, device)
        times.append(clock() - start)
    seconds: float = max(workers.gather(median(times)))
    size = sum(weight.numel() * weight.element_size() for weight in weights)
    return 2 * (workers.size - 1) / workers.size * size / seconds


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
