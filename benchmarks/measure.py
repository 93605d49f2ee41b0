"""Measuring what a command or a function costs: CPU seconds, wall seconds, memory."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a command costs: CPU seconds, wall seconds, and peak resident memory in MB."""

    cpu: float
    wall: float
    megabytes: float


def measure_command(*words: str) -> Cost:
    """Run a command and return its cost, including all its children. Exit with a message if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(words)}: exit status {os.waitstatus_to_exitcode(status)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def measure_best_cpu(function: Callable[[], object], repeats: int = 3) -> float:
    """Call a function several times and return the least CPU seconds of a call.

    Other work only adds to the time.
    """
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)
