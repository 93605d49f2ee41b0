"""Decompression of bzip2 dumps: the kernel, Python's bz2, and both block by block as a dump is read.

    python -m benchmarks.bzip2 [FILE...]

Each round times all of them one after another, so that other work on the machine affects all of them;
figures are MB of text a CPU second, from the least time of all rounds. FILE: dumps of the reference kit
where none is given.
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
    """Bytes of the text, read in this thread."""
    with ThreadPool(1) as pool:
        return sum(len(text) for text, _ in read_bzip2(BytesIO(data), "dump", pool, engine))


def measure_rates(data: bytes) -> tuple[float, float, float]:
    """MB of text a CPU second: the kernel's, of Python's bz2 block by block, of Python's bz2 as it is."""
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
    """Print the figures."""
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
