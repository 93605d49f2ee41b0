"""Speed, memory and efficiency of ``bertdata pack``: ``python -m benchmarks.packing``.

It makes TFRecord datasets of two sizes from the sample corpus, and packs them with every layout of the rows.
It prints MB of input shards per CPU second (user and system, of all processes) and the peak memory of the
largest process.

With ``--plans FILE`` it prints instead how full the rows get with each packing method, for histograms of
lengths. FILE is JSON with lists: item i of a list is the number of sequences with i + 1 tokens.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import ROOT, make_parts
from benchmarks.measure import measure_command

PARTS = 16
PART_BYTES = 2_000_000
METHODS = (("lpfhp", 3), ("lpfhp", 12), ("lp", 2), ("lp", 3), ("lp", 4))


def make_dataset(place: Path, examples: int, length: int) -> Path:
    """Make a TFRecord dataset with at least this many examples.

    It has enough examples because each document is used several times (the dupe factor).

    length: number of ids of an example.
    """
    parts = [str(path) for path in make_parts(place, PARTS, PART_BYTES)]
    output, dupe_factor = place / "shards", 1
    while True:
        words = ("create", *parts, "--output", str(output), "--vocab", str(ROOT / "golden" / "vocab.txt"))
        sizes = ("--max-seq-length", str(length), "--max-predictions-per-seq", str(round(length * 0.15)))
        measure_command(sys.executable, "-m", "bertdata", *words, *sizes, "--dupe-factor", str(dupe_factor))
        found: int = json.loads((output / "manifest.json").read_text())["totals"]["examples"]
        if found >= examples:
            return output
        dupe_factor = -(-dupe_factor * examples * 21 // (20 * found))
        shutil.rmtree(output)


def measure_layouts(place: Path, examples: int, length: int, layouts: Sequence[str], workers: int) -> None:
    """Make a dataset, pack it with each layout of the rows, and print a line for each."""
    source = make_dataset(place, examples, length)
    totals = json.loads((source / "manifest.json").read_text())["totals"]
    megabytes = totals["bytes"] / 1e6
    for layout in layouts:
        output = place / "packed"
        words = ("pack", str(source), "--output", str(output), "--layout", layout, "--workers", str(workers))
        cost = measure_command(sys.executable, "-m", "bertdata", *words)
        print(
            f"{length:>6}  {totals['examples']:>9,}  {megabytes:>8,.0f} MB  {layout:<9}  {cost.cpu:>6.1f} s  "
            f"{megabytes / cost.cpu:>6.0f} MB/s  {cost.megabytes:>5.0f} MB",
            flush=True,
        )
        shutil.rmtree(output)
    shutil.rmtree(source)


def print_plans(histograms: Path, *, nnls: bool) -> None:
    """Print how full the rows get with each packing method, for each histogram of lengths.

    nnls: True to include the method that solves a non-negative least-squares problem.
    """
    import numpy as np

    from bertdata.packing.linear_program import bound_rows_below
    from bertdata.packing.methods import plan_packs

    print(f"{'histogram':<16}  {'method':<6}  most  efficiency    a row   seconds")
    for name, counts in json.loads(histograms.read_text()).items():
        if not isinstance(counts, list):
            continue
        histogram = np.array([0, *counts])
        tokens = int((histogram * np.arange(len(histogram))).sum())
        for method, most in (*METHODS, *[("nnls", 3)] * nnls):
            start = time.process_time()
            plan = plan_packs(histogram, most=most, method=method)
            seconds = time.process_time() - start
            print(
                f"{name:<16}  {method:<6}  {most:>4}  {plan.efficiency:.4%}  {plan.examples_per_row:.5f}  "
                f"{seconds:>6.2f}",
                flush=True,
            )
        for most in (2, 3):
            bound = tokens / (bound_rows_below(histogram, most) * (len(histogram) - 1))
            print(f"{name:<16}  {'bound':<6}  {most:>4}  {bound:.4%}")


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--examples", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--length", type=int, default=512, help="positions of a row (default: 512)")
    parser.add_argument("--layouts", nargs="+", help="default: all")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--plans", type=Path, metavar="FILE", help="histograms to plan for, instead")
    parser.add_argument("--nnls", action="store_true", help="also by least squares, which takes minutes")
    flags = parser.parse_args(arguments)
    if flags.plans:
        print_plans(flags.plans, nnls=flags.nnls)
        return 0
    from bertdata.shards.packed.layouts import LAYOUTS

    print("length   examples       shards  layout       CPU    shards a CPU s    peak")
    with tempfile.TemporaryDirectory() as place:
        for examples in flags.examples:
            measure_layouts(
                Path(place), examples, flags.length, flags.layouts or list(LAYOUTS), flags.workers
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
