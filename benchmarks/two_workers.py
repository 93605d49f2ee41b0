"""Wall seconds of ``bertdata create`` with two workers and with one worker, on 8 text parts of 5 MB."""

import shutil
import tempfile
from pathlib import Path

from benchmarks import corpus
from benchmarks.examples import run_create

PARTS, PART_BYTES = 8, 5_000_000


def make_parts(place: Path) -> list[Path]:
    """Write eight text parts with the same text, and return their paths."""
    text = corpus.make_long_text(PART_BYTES)
    parts = [place / f"part-{number}" for number in range(PARTS)]
    for part in parts:
        part.write_bytes(text)
    return parts


def main() -> None:
    """Print the wall seconds with one worker and with two."""
    with tempfile.TemporaryDirectory() as place:
        parts = make_parts(Path(place))
        walls = {}
        for workers in (1, 2, 1, 2):
            output = Path(place, "out")
            cost = run_create(parts[0], output, "native", workers, *parts[1:])
            walls[workers] = min(cost.wall, walls.get(workers, cost.wall))
            shutil.rmtree(output)
    print(f"8 parts of 5 MB: one worker {walls[1]:.2f} s, two workers {walls[2]:.2f} s, "
          f"ratio {walls[1] / walls[2]:.2f} (wanted: 1.8)")  # fmt: skip


if __name__ == "__main__":
    main()
