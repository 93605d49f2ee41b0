"""Bandwidth between the devices of a run, measured."""

import time

import torch
import torch.distributed as dist

BYTES = 2**24
REPETITIONS = 5


def measure_bandwidth(device: torch.device, size: int = BYTES) -> float:
    """Bytes a second that each worker of torch.distributed sends, while it receives as many.

    Measured by all-reduces of so many bytes, of which n workers send 2 (n - 1) / n each; the shortest of
    some repetitions counts. The same number on all workers, which call this together; they are two or more.
    """
    workers = dist.get_world_size()
    values = torch.ones(size // 4, device=device)
    seconds = torch.full((), torch.inf, dtype=torch.float64, device=device)
    for _ in range(1 + REPETITIONS):
        _wait(device)
        start = time.perf_counter()
        dist.all_reduce(values)
        values.fill_(1.0)
        _wait(device)
        seconds.clamp_(max=time.perf_counter() - start)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return 2 * (workers - 1) / workers * size / seconds.item()


def _wait(device: torch.device) -> None:
    """Wait until all workers are here and the device has done its work."""
    ready = torch.ones(1, device=device)
    dist.all_reduce(ready)
    ready.tolist()
