"""Wall time of the Beam pipeline with one local worker, compared with ``bertdata create``.

Run it as ``python -m benchmarks.beam_overhead``. The input is eight text parts of 5 MB. Both programs run
alternately. The least time of each is printed, because other work on the machine only adds to the time.

Beam's import takes the same time in every run, so its share of the whole is larger if the rest is fast. The
two recipes show the extremes: "mlperf" writes TFRecord, the fastest format, and "nvidia" HDF5, a slow one.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import find_vocabulary, make_long_text
from benchmarks.measure import measure_command

PARTS = 8
PART_BYTES = 5_000_000
ROUNDS = {"mlperf": 3, "nvidia": 1}


def measure(directory: Path, recipe: str) -> tuple[float, float]:
    """Return the least wall seconds of ``bertdata create --workers 1`` and of the Beam pipeline."""
    text = make_long_text(PART_BYTES)
    inputs = [directory / f"part-{number:05d}" for number in range(PARTS)]
    for path in inputs:
        path.write_bytes(text)
    output = directory / "shards"
    common = ("--output", str(output), "--vocab", str(find_vocabulary()), "--recipe", recipe)
    names = [str(path) for path in inputs]
    plain = (sys.executable, "-m", "bertdata", "create", *names, "--workers", "1", *common)
    beam = (sys.executable, "-m", "beam_pipelines.prepare", "--input", *names, *common)
    walls: dict[tuple[str, ...], list[float]] = {plain: [], beam: []}
    for _ in range(ROUNDS[recipe]):
        for words, seconds in walls.items():
            seconds.append(measure_command(*words).wall)
            shutil.rmtree(output)
    return min(walls[plain]), min(walls[beam])


def main() -> None:
    """Print a line with both times for each recipe."""
    for recipe in ROUNDS:
        with tempfile.TemporaryDirectory() as directory:
            plain, beam = measure(Path(directory), recipe)
        print(
            f"8 parts of 5 MB, recipe {recipe}: bertdata create {plain:.2f} s; Beam, one local worker "
            f"{beam:.2f} s: {beam / plain:.2f} times, {beam - plain:.2f} s more (wanted: 1.15 times)"
        )


if __name__ == "__main__":
    main()
