"""Running a command or a function and reading what it cost."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """CPU and wall seconds and peak resident megabytes."""

    cpu: float
    wall: float
    megabytes: float


def command(*words: str) -> Cost:
    """What the command cost, its children included; its failure ends the benchmark."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(words)}: exit status {os.waitstatus_to_exitcode(status)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def best_cpu(function: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU seconds of this process over the repeats; shared machines only ever add to it."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)
