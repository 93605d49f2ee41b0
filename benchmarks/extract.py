"""Extraction of a dump: one worker, two workers, and wikiextractor's own command with two processes.

    python -m benchmarks.extract [COPIES]

The dump is the kit's, its pages repeated; all runs take the same bz2 file (one stream). A round is the
three commands one after another, so that what else the machine does falls on all of them; figures are
the least of all rounds. Then memory: the peak of a process for one copy and for all.
"""

import bz2
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import kit
from benchmarks.measure import Cost, command

ROUNDS = 5
_OURS = """
import sys
from bertdata.wiki.extract import extract
extract(sys.argv[1], sys.argv[2], workers=int(sys.argv[3]))
"""


def write_repeated(once: Path, dump: Path, copies: int) -> int:
    """The dump with its pages that many times over, as one bzip2 stream; bytes of XML."""
    xml = bz2.decompress(once.read_bytes())
    start, stop = xml.index(b"  <page>"), xml.rindex(b"</page>") + len(b"</page>\n")
    with bz2.open(dump, "wb") as file:
        for piece in (xml[:start], *[xml[start:stop]] * copies, xml[stop:]):
            file.write(piece)
    return len(xml) + (copies - 1) * (stop - start)


def ours(dump: Path, workers: int) -> Cost:
    """What our extraction costs."""
    with tempfile.TemporaryDirectory() as directory:
        return command(sys.executable, "-c", _OURS, str(dump), directory, str(workers))


def theirs(dump: Path) -> Cost:
    """What wikiextractor's command costs with two processes."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["-m", "wikiextractor.WikiExtractor", str(dump), "-o", directory, "--processes", "2", "-q"]
        return command(sys.executable, *words)


def main() -> None:
    """Print the figures."""
    place = kit()
    if place is None:
        sys.exit("benchmarks.extract: no reference kit; set BERTDATA_REFERENCE_KIT")
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    once = place / "dump" / "enwiki-p10-p30302-shortened.xml.bz2"
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "dump.xml.bz2"
        megabytes = write_repeated(once, dump, copies) / 1e6
        rounds = [(ours(dump, 1), ours(dump, 2), theirs(dump)) for _ in range(ROUNDS)]
        single = ours(once, 2)
    walls = [min(cost.wall for cost in runs) for runs in zip(*rounds, strict=True)]
    names = ("bertdata, one worker", "bertdata, two workers", "wikiextractor, two processes")
    print(f"extraction of {megabytes:.1f} MB of XML (bz2, one stream); {os.cpu_count()} cores")
    for name, wall in zip(names, walls, strict=True):
        print(f"  {name:30} {wall:6.2f} s {megabytes / wall:6.2f} MB/s")
    print(f"  two workers to one             {walls[0] / walls[1]:6.2f} times")
    print(f"  two workers to wikiextractor   {walls[2] / walls[1]:6.2f} times")
    peak = max(two.megabytes for _, two, _ in rounds)
    print(
        f"  peak memory of a process       {single.megabytes:6.1f} MB for 1 copy, {peak:.1f} MB for {copies}"
    )


if __name__ == "__main__":
    main()
