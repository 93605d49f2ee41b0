"""Extraction of a dump: one worker, two workers, and wikiextractor's own command.

    python -m benchmarks.extract [COPIES]

First a dump without template pages: a piece of English Wikipedia, its pages repeated, as one bz2 stream.
A round is three commands one after another, so that other work on the machine affects all of them;
figures are the least of all rounds. Then the peak memory of a process for one copy and for all.
Last a whole dump with its templates (a small Wikipedia): MB of XML a CPU second, which is far less,
because wikiextractor expands templates in Python.
"""

import bz2
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import kit
from benchmarks.measure import Cost, command

WITHOUT_TEMPLATES = "enwiki-p10-p30302-shortened.xml.bz2"
WITH_TEMPLATES = "ltgwiki-smallwiki.xml.bz2"
ROUNDS = 5
_OURS = """
import sys
from bertdata.wiki.extract import extract
extract(sys.argv[1], sys.argv[2], workers=int(sys.argv[3]))
"""


def write_repeated(once: Path, dump: Path, copies: int) -> int:
    """Write the dump with its pages repeated ``copies`` times, as one bzip2 stream; bytes of XML."""
    xml = bz2.decompress(once.read_bytes())
    start, stop = xml.index(b"  <page>"), xml.rindex(b"</page>") + len(b"</page>\n")
    with bz2.open(dump, "wb") as file:
        for piece in (xml[:start], *[xml[start:stop]] * copies, xml[stop:]):
            file.write(piece)
    return len(xml) + (copies - 1) * (stop - start)


def ours(dump: Path, workers: int) -> Cost:
    """The cost of our extraction."""
    with tempfile.TemporaryDirectory() as directory:
        return command(sys.executable, "-c", _OURS, str(dump), directory, str(workers))


def theirs(dump: Path) -> Cost:
    """The cost of wikiextractor's command with two processes."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["-m", "wikiextractor.WikiExtractor", str(dump), "-o", directory, "--processes", "2", "-q"]
        return command(sys.executable, *words)


def extraction_rates(place: Path, dump: Path) -> tuple[float, float]:
    """MB of XML a CPU second of whole commands with one worker: ours, wikiextractor's."""
    megabytes = len(bz2.decompress(dump.read_bytes())) / 1e6
    ours = ["bertdata", "extract", str(dump), "--output", str(place / "e"), "--workers", "1"]
    theirs = ["wikiextractor.WikiExtractor", str(dump), "-o", str(place / "w"), "--processes", "1", "-q"]
    place.mkdir(exist_ok=True)
    costs = [command(sys.executable, "-m", *words).cpu for words in (ours, theirs)]
    return megabytes / costs[0], megabytes / costs[1]


def main() -> None:
    """Print the figures."""
    place = kit()
    if place is None:
        sys.exit("benchmarks.extract: no reference kit; set BERTDATA_REFERENCE_KIT")
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    once = place / "dump" / WITHOUT_TEMPLATES
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
    with tempfile.TemporaryDirectory() as directory:
        rate, peer = extraction_rates(Path(directory), place / "dump" / WITH_TEMPLATES)
    print(f"a dump with its templates: {rate:.2f} MB of XML a CPU second, wikiextractor {peer:.2f}")


if __name__ == "__main__":
    main()
