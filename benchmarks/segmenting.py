"""Speed and memory of ``bertdata segment``, which makes text parts from articles, with one worker."""

import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure

COPIES, MORE_COPIES = 4, 40


def measure_cost(source: Path, recipe: str) -> tuple[float, measure.Cost]:
    """Run the whole command twice. Return the MB that it reads, and the lesser of the two costs.

    recipe: name of the rules by which parts are made.
    """
    size = sum(path.stat().st_size for path in source.rglob("wiki_*"))
    how = ["--recipe", recipe, "--eval-articles", "100", "--training-shards", "16", "--test-shards", "2"]
    words = [sys.executable, "-m", "bertdata", "segment", str(source), *how, "--workers", "1"]
    with tempfile.TemporaryDirectory() as output:
        runs = [measure.measure_command(*words, "--output", str(Path(output, str(run)))) for run in range(2)]
    return size / 1e6, min(runs, key=lambda run: run.cpu)


def measure_rate(source: Path, recipe: str) -> float:
    """Return the speed of ``bertdata segment`` in MB of extracted text per CPU second."""
    megabytes, least = measure_cost(source, recipe)
    return megabytes / least.cpu


def copy_kit_files(place: Path, copies: int = MORE_COPIES) -> Path:
    """Copy the kit's extracted files several times into one directory."""
    kit = corpus.find_kit()
    if kit is None:
        sys.exit("benchmarks.segmenting: no reference kit; set BERTDATA_REFERENCE_KIT")
    files = sorted((kit / "extracted" / "AA").iterdir())
    for number in range(copies):
        folder = place / "extracted" / f"{chr(65 + number // 26)}{chr(65 + number % 26)}"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
    return place / "extracted"


def main() -> None:
    """Print speed and memory of ``bertdata segment`` for each recipe."""
    for recipe in ("mlperf", "nvidia"):
        memory = {}
        for copies in (COPIES, MORE_COPIES):
            with tempfile.TemporaryDirectory() as place:
                megabytes, least = measure_cost(copy_kit_files(Path(place), copies), recipe)
            memory[f"{megabytes:.0f} MB"] = f"{least.megabytes:.0f} MB"
        print(f"segment, recipe {recipe}: {megabytes / least.cpu:.1f} MB a CPU second (wanted: 25)")
        print(f"  memory by size of the extracted text: {memory}")


if __name__ == "__main__":
    main()
