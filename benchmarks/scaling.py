"""How time and memory of a Beam run grow with the corpus.

Run it as ``python -m benchmarks.scaling``. The corpora have 4, 8, 16 and 32 text parts of 5 MB, and each run
uses two processes. There are as many shards as parts, so that the largest shard has the same size in all
runs. CPU seconds should grow in proportion to the corpus. The memory of the launching process and of its
workers should not grow. It runs only on Linux, because peaks of memory are read from /proc.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import find_vocabulary, make_long_text

PART_BYTES = 5_000_000
PARTS = (4, 8, 16, 32)
ROUTES = {"none": (), "global": ("--shuffle", "global")}
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Growth:
    """Cost of a run: CPU seconds, wall seconds, and peak memory in MB.

    The peak memory is given for the launching process and for its largest worker.
    """

    cpu: float
    wall: float
    launcher: float
    worker: float


def measure_growth(words: list[str]) -> Growth:
    """Run a command and return its cost, with the peak memory of its processes."""
    start, before = time.perf_counter(), os.times()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    peaks: dict[int, float] = {}
    while process.poll() is None:
        for pid in list_session_processes(process.pid):
            peaks[pid] = max(peaks.get(pid, 0.0), read_peak_megabytes(pid))
        time.sleep(POLL_SECONDS)
    if process.returncode:
        sys.exit(f"{' '.join(words)}: exit status {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    workers = [peak for pid, peak in peaks.items() if pid != process.pid]
    return Growth(cpu, time.perf_counter() - start, peaks[process.pid], max(workers))


def list_session_processes(session: int) -> list[int]:
    """Return the ids of all processes of a session, that is, of a command and its children."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # the process has ended
        if int(fields[3]) == session:
            found.append(int(name))
    return found


def read_peak_megabytes(pid: int) -> float:
    """Return the peak resident memory of a process so far."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def make_command(parts: list[Path], output: Path, *flags: str) -> list[str]:
    """Return the command line of a run with two processes."""
    processes = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")
    words = [sys.executable, "-m", "beam_pipelines.prepare", "--input", *map(str, parts)]
    return [*words, "--output", str(output), "--vocab", str(find_vocabulary()), *processes, *flags]


def main() -> None:
    """Run the pipeline on corpora of growing size and print the cost of each run."""
    with tempfile.TemporaryDirectory() as place:
        text = make_long_text(PART_BYTES)
        parts = [Path(place, f"part-{number:05}") for number in range(max(PARTS))]
        for part in parts:
            part.write_bytes(text)
        for shuffle, flags in ROUTES.items():
            for count in PARTS:
                shards = ("--num-shards", str(count)) if flags else ()
                output = Path(place, f"{shuffle}-{count}")
                cost = measure_growth(make_command(parts[:count], output, *flags, *shards))
                print(
                    f"--shuffle {shuffle:6} {count:3} parts of 5 MB: {cost.cpu:6.1f} CPU s, "
                    f"{cost.cpu / count:.2f} a part; {cost.wall:5.1f} s; peak of the launcher "
                    f"{cost.launcher:.0f} MB, of a worker {cost.worker:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
