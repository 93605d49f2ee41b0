"""CPU time of ``bertdata create`` from a part to a TFRecord shard, with the native and the Python engine."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure

PART_BYTES = 10_000_000
RECORD_REPEATS = 3


def run_create(part: Path, output: Path, engine: str, workers: int = 1, *parts: Path) -> measure.Cost:
    """Run ``bertdata create`` and return its cost. The output is kept.

    The examples have 512 ids with 76 masks, and every document is used ten times (dupe factor 10).

    engine: "native" for the C++ kernels, or "python".
    parts: further text parts to read.
    """
    shutil.rmtree(output, ignore_errors=True)
    words = [
        "create",
        *map(str, (part, *parts)),
        "--output",
        str(output),
        "--vocab",
        str(corpus.find_vocabulary()),
    ]
    how = ["--recipe", "mlperf", "--engine", engine, "--workers", str(workers)]
    return measure.measure_command(sys.executable, "-m", "bertdata", *words, *how)


def main() -> None:
    """Print the cost of ``bertdata create`` with each engine."""
    with tempfile.TemporaryDirectory() as place:
        part = Path(place, "part")
        part.write_bytes(corpus.make_long_text(PART_BYTES))
        megabytes = part.stat().st_size / 1e6
        fast = min(
            (run_create(part, Path(place, "n"), "native") for _ in range(RECORD_REPEATS)), key=lambda c: c.cpu
        )
        slow = run_create(part, Path(place, "p"), "python")
        same = Path(place, "n", "MD5SUMS").read_bytes() == Path(place, "p", "MD5SUMS").read_bytes()
        totals = json.loads(Path(place, "n", "manifest.json").read_text())["totals"]
    print(f"shards of a {megabytes:.1f} MB part at 512/76, dupe factor 10: {totals['examples']} examples, "
          f"{totals['bytes'] / 1e6:.0f} MB")  # fmt: skip
    print(f"  native engine  {fast.cpu:8.2f} CPU s  {fast.megabytes:6.0f} MB of memory")
    print(f"  python engine  {slow.cpu:8.2f} CPU s  {slow.megabytes:6.0f} MB of memory, same bytes: {same}")
    print(f"  ratio          {slow.cpu / fast.cpu:8.1f} (wanted: 100), "
          f"{fast.cpu / totals['examples'] * 1e6:.1f} microseconds an example")  # fmt: skip
    print(f"  the original, by its measured rate on another machine (171 s for 26.4 MB): "
          f"{171 / 26.4 * megabytes:.0f} s, {171 / 26.4 * megabytes / fast.cpu:.0f} times")  # fmt: skip


if __name__ == "__main__":
    main()
