"""Speed of decompressing bzip2 dumps with this project's C++ kernel and with Python's module bz2.

    python -m benchmarks.bzip2 [FILE...]

bz2 is measured in two ways: on the whole file, and block by block, which is how a dump is read without the
kernel. Each round measures all three one after another, so that other work on the machine affects all of
them. The result is MB of text per CPU second, from the least time over all rounds.

FILE: a dump to decompress. By default the dumps of the reference kit are decompressed.
"""

import bz2
import os
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from benchmarks.corpus import find_kit
from benchmarks.measure import measure_best_cpu
from bertdata._native import Engine
from bertdata.io.thread_pool import ThreadPool
from bertdata.wiki.dump.bzip2 import read_bzip2

ROUNDS = 5


def read_dump(data: bytes, engine: Engine) -> int:
    """Decompress a dump in this thread and return the size of its text in bytes."""
    with ThreadPool(1) as pool:
        return sum(len(text) for text, _ in read_bzip2(BytesIO(data), "dump", pool, engine))


def measure_rates(data: bytes) -> tuple[float, float, float]:
    """Return MB of text per CPU second: of the kernel, of bz2 block by block, and of bz2 on whole files."""
    megabytes = len(bz2.decompress(data)) / 1e6
    ways: list[Callable[[], object]] = [
        lambda: read_dump(data, "native"),
        lambda: read_dump(data, "python"),
        lambda: bz2.decompress(data),
    ]
    rounds = [[measure_best_cpu(way, 1) for way in ways] for _ in range(ROUNDS)]
    native, python, plain = (megabytes / min(seconds) for seconds in zip(*rounds, strict=True))
    return native, python, plain


def main() -> None:
    """Print the speeds for every dump."""
    files = [Path(name) for name in sys.argv[1:]]
    if not files:
        place = find_kit()
        if place is None:
            sys.exit("benchmarks.bzip2: no reference kit; set BERTDATA_REFERENCE_KIT or give files")
        files = sorted((place / "dump").glob("*.bz2"))
    print(f"bzip2 to text, MB a CPU second; {os.cpu_count()} cores")
    for file in files:
        native, python, plain = measure_rates(file.read_bytes())
        print(
            f"  {file.name:40} kernel {native:6.1f}   bz2 by blocks {python:6.1f}   bz2 {plain:6.1f}   "
            f"ratio {native / plain:5.2f}"
        )


if __name__ == "__main__":
    main()
