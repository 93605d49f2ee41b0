"""Timing of work on the GPU, which goes on after a call has returned, and the GPU's peak memory."""

import time
from collections.abc import Callable

import torch

from benchmarks.gpu.figures import NOT_HERE, Figures


def wait_for_device(device: str) -> None:
    """Wait until the GPU has finished all work that was started on it."""
    if device == "cuda":
        torch.cuda.synchronize()


def time_call(function: Callable[[], object], device: str) -> float:
    """Return the seconds that a call takes, including all work that it starts on the GPU."""
    wait_for_device(device)
    start = time.perf_counter()
    function()
    wait_for_device(device)
    return time.perf_counter() - start


def time_repeated_calls(function: Callable[[], object], device: str, seconds: float) -> float:
    """Call a function for about ``seconds`` seconds, and return the mean seconds of a call.

    The first three calls do not count.
    """
    for _ in range(3):
        once = time_call(function, device)
    count = max(3, round(seconds / max(once, 1e-6)))

    def repeat() -> None:
        """Call the function as often as fits into the time."""
        for _ in range(count):
            function()

    return time_call(repeat, device) / count


def add_peak_memory(figures: Figures, device: str) -> None:
    """Write to the figures file the largest amount of memory that PyTorch has used on the GPU."""
    if device == "cuda":
        figures.add("peak memory", torch.cuda.max_memory_allocated() / 2**30, "GiB")
    else:
        figures.add_absent("peak memory", NOT_HERE)
