"""Timing of work on the GPU, which runs asynchronously, and its peak memory."""

import time
from collections.abc import Callable

import torch

from benchmarks.gpu.figures import NOT_HERE, Figures


def wait_for_device(device: str) -> None:
    """Wait until the GPU has finished all work that was started on it."""
    if device == "cuda":
        torch.cuda.synchronize()


def time_call(function: Callable[[], object], device: str) -> float:
    """Return the seconds of a call, including the work that it starts on the GPU."""
    wait_for_device(device)
    start = time.perf_counter()
    function()
    wait_for_device(device)
    return time.perf_counter() - start


def time_repeated_calls(function: Callable[[], object], device: str, seconds: float) -> float:
    """Return the mean seconds of a call, from calls repeated for about ``seconds`` seconds.

    The first three calls do not count.
    """
    for _ in range(3):
        once = time_call(function, device)
    count = max(3, round(seconds / max(once, 1e-6)))

    def repeat() -> None:
        for _ in range(count):
            function()

    return time_call(repeat, device) / count


def add_peak_memory(figures: Figures, device: str) -> None:
    """Write the largest amount of memory that PyTorch has used on the GPU to the figures file."""
    if device == "cuda":
        figures.add("peak memory", torch.cuda.max_memory_allocated() / 2**30, "GiB")
    else:
        figures.absent("peak memory", NOT_HERE)
