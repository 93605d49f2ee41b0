"""``bertdata segment`` as a whole, one worker: MB of extracted text a CPU second, both recipes."""

import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure

COPIES = 20


def rate(source: Path, recipe: str) -> float:
    """MB/s of the whole command, its start included."""
    size = sum(path.stat().st_size for path in source.rglob("wiki_*"))
    with tempfile.TemporaryDirectory() as output:
        how = ["--recipe", recipe, "--eval-articles", "100", "--workers", "1"]
        words = [sys.executable, "-m", "bertdata", "segment", str(source), *how]
        seconds = [measure.command(*words, "--output", str(Path(output, str(run)))).cpu for run in range(2)]
    return size / 1e6 / min(seconds)


def copies_of_the_kit(place: Path) -> Path:
    """Many extracted files under one directory."""
    kit = corpus.kit()
    if kit is None:
        sys.exit("benchmarks.segmenting: no reference kit; set BERTDATA_REFERENCE_KIT")
    files = sorted((kit / "extracted" / "AA").iterdir())
    for number in range(COPIES):
        folder = place / "extracted" / f"A{chr(65 + number)}"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
    return place / "extracted"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        source = copies_of_the_kit(Path(place))
        for recipe in ("mlperf", "nvidia"):
            megabytes = rate(source, recipe)
            print(f"segment, recipe {recipe}: {megabytes:.1f} MB of extracted text a CPU second (wanted: 25)")


if __name__ == "__main__":
    main()
