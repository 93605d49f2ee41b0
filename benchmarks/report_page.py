"""Time and memory of ``bertdata report`` on 1 GB of shards, compared with ``verify-md5`` and ``stats``.

The shards are made from copies of one text part. With ``--shards DIR``, an existing dataset is used instead.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import corpus
from benchmarks.measure import Cost, measure_command

PARTS = 100


def make_shards(folder: Path) -> Path:
    """Make about 1 GB of shards with MLPerf's examples of 128 tokens, and return their directory."""
    text = corpus.read_text()
    copies = PARTS * max(1, 2_600_000 // len(text))
    (folder / "parts").mkdir()
    for number in range(copies):
        (folder / "parts" / f"part-{number:05}-of-{copies:05}").write_bytes(text)
    shards = folder / "shards"
    flags = ["--vocab", str(corpus.find_vocabulary()), "--max-seq-length=128", "--max-predictions-per-seq=20"]
    parts = f"{folder / 'parts'}/part-*"
    measure_command(
        sys.executable, "-m", "bertdata", "create", parts, "--output", str(shards), "--dupe-factor=2", *flags
    )
    return shards


def measure_megabytes(shards: Path) -> float:
    """Return the size of the shards in MB."""
    return sum(path.stat().st_size for path in shards.glob("*.tfrecord")) / 1e6


def format_row(name: str, cost: Cost, megabytes: float) -> str:
    """Return a line of the table: the command's name, its cost, and its speed for this many MB."""
    return (
        f"{name:<40} {cost.wall:6.1f} s {cost.cpu:6.1f} s of processor {cost.megabytes:6.0f} MB  "
        f"({megabytes / cost.wall:,.0f} MB/s)"
    )


def main() -> None:
    """Print the cost of ``bertdata report`` and of the commands it is compared with."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=Path, help="a dataset that is there already")
    given = parser.parse_args().shards
    folder = Path(tempfile.mkdtemp(prefix="report-"))
    try:
        shards = given or make_shards(folder)
        megabytes = measure_megabytes(shards)
        page = folder / "report.html"
        print(f"{megabytes:,.0f} MB in {len(list(shards.glob('*.tfrecord')))} shards")
        bertdata = (sys.executable, "-m", "bertdata")
        for name, words in {
            "bertdata report": ("report", str(shards), "--output", str(page)),
            "bertdata report --no-verify": ("report", str(shards), "--output", str(page), "--no-verify"),
            "bertdata verify-md5 --chain": ("verify-md5", str(shards), "--chain"),
            "bertdata stats --workers 1 (all records)": ("stats", str(shards), "--workers", "1"),
        }.items():
            print(format_row(name, measure_command(*bertdata, *words), megabytes))
        print(f"the page has {page.stat().st_size / 1e6:.2f} MB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
