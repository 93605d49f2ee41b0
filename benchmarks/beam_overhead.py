"""What Beam adds on one local worker: wall seconds of the pipeline and of ``bertdata create``, same run.

Run as ``python -m benchmarks.beam_overhead``. Eight parts of 5 MB, 512/76, dupe factor 10; the two
take turns, and the least time of each counts: a shared machine only ever adds to it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import long_text, vocabulary
from benchmarks.measure import command

PARTS = 8
PART_BYTES = 5_000_000
ROUNDS = 3


def measure(directory: Path, parts: int = PARTS, rounds: int = ROUNDS) -> tuple[float, float]:
    """Least wall seconds of ``bertdata create --workers 1`` and of the pipeline."""
    text = long_text(PART_BYTES)
    inputs = [directory / f"part-{number:05d}" for number in range(parts)]
    for path in inputs:
        path.write_bytes(text)
    output = directory / "shards"
    common = ("--output", str(output), "--vocab", str(vocabulary()), "--recipe", "mlperf")
    names = [str(path) for path in inputs]
    plain = (sys.executable, "-m", "bertdata", "create", *names, "--workers", "1", *common)
    beam = (sys.executable, "-m", "beam_pipelines.prepare", "--input", *names, *common)
    walls: dict[tuple[str, ...], list[float]] = {plain: [], beam: []}
    for _ in range(rounds):
        for words, seconds in walls.items():
            seconds.append(command(*words).wall)
            shutil.rmtree(output)
    return min(walls[plain]), min(walls[beam])


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        plain, beam = measure(Path(directory))
    print(f"bertdata create, one worker   {plain:6.2f} s")
    print(
        f"Beam, one local worker        {beam:6.2f} s   {beam / plain:.2f} times, {beam - plain:.2f} s more"
    )


if __name__ == "__main__":
    main()
