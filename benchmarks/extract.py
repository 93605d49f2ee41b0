"""Speed of extracting articles from a dump: this project's two extractors and wikiextractor's own command.

    python -m benchmarks.extract [COPIES]

The first table compares whole commands with one worker on two bz2 dumps: a small Wikipedia with its
templates, and a piece of English Wikipedia without template pages. A round runs the three commands one after
another, so that other work on the machine affects all of them. The figures are the least CPU seconds over all
rounds. For speeds, the time for a dump with a single page is subtracted, which is the time to start Python.

The second table is about a dump that repeats the pages of the small Wikipedia COPIES times (default 50). It
compares two workers with one (the median over pairs of commands) and gives the peak memory of a process. It
contains no speeds, because the kernel of extractor 3.1.0 caches the values of template calls, and in this
dump every call is repeated.
"""

import bz2
import compileall
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

import bertdata
from benchmarks.corpus import find_kit
from benchmarks.measure import Cost, measure_command

WITHOUT_TEMPLATES = "enwiki-p10-p30302-shortened.xml.bz2"
WITH_TEMPLATES = "ltgwiki-smallwiki.xml.bz2"
ROUNDS = 7
PAIRS = 40
"""Number of pairs of commands, one with two workers and one with one worker.

It is high because the speed of the machine may change by half while a pair runs.
"""
EXTRACTORS = ("3.1.0", "mlperf")
_DAY = "2020-01-01"


def write_repeated(once: Path, dump: Path, copies: int) -> int:
    """Write a dump with ``copies`` copies of each page, and return the bytes of its XML.

    The dump is plain XML or a single bzip2 stream, depending on its name.

    once: the dump whose pages are repeated.
    """
    xml = bz2.decompress(once.read_bytes())
    start, stop = xml.index(b"  <page>"), xml.rindex(b"</page>") + len(b"</page>\n")
    with bz2.open(dump, "wb") if dump.suffix == ".bz2" else dump.open("wb") as file:
        for piece in (xml[:start], *[xml[start:stop]] * copies, xml[stop:]):
            file.write(piece)
    return len(xml) + (copies - 1) * (stop - start)


def run_ours(dump: Path, extractor: str, workers: int = 1) -> Cost:
    """Run ``bertdata extract`` and return its cost."""
    with tempfile.TemporaryDirectory() as directory:
        flags = ["--extractor", extractor, "--workers", str(workers), "--date", _DAY, "--output", directory]
        return measure_command(sys.executable, "-m", "bertdata", "extract", str(dump), *flags)


def run_theirs(dump: Path) -> Cost:
    """Run wikiextractor's command with one process that extracts articles, and return its cost."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["-m", "wikiextractor.WikiExtractor", str(dump), "-o", directory, "--processes", "1", "-q"]
        return measure_command(sys.executable, *words)


def write_one_page(dump: Path, page: Path) -> None:
    """Write a dump that contains only the first page of ``dump``, uncompressed.

    page: path of the new dump.
    """
    xml = bz2.decompress(dump.read_bytes())
    start, stop = xml.index(b"</page>\n") + len(b"</page>\n"), xml.rindex(b"</page>\n") + len(b"</page>\n")
    page.write_bytes(xml[:start] + xml[stop:])


def measure_extraction_rate(dump: Path, extractor: str = "3.1.0", *, packed: bool = True) -> float:
    """Return the speed of ``bertdata extract`` in MB of XML per CPU second.

    The cost for a dump with one page is subtracted first, because it is the cost of starting Python.

    packed: True to read the dump as bzip2, False to read it as plain XML.
    """
    with tempfile.TemporaryDirectory() as directory:
        page, whole = Path(directory) / "page.xml", Path(directory) / f"dump.xml{'.bz2' if packed else ''}"
        write_one_page(dump, page)
        megabytes = write_repeated(dump, whole, copies=1) / 1e6
        rounds = [(run_ours(page, extractor).cpu, run_ours(whole, extractor).cpu) for _ in range(ROUNDS)]
    start, cpu = (min(costs) for costs in zip(*rounds, strict=True))
    return megabytes / (cpu - start)


def measure_wikiextractor_rate(dump: Path) -> float:
    """Return the speed of wikiextractor's whole command in MB of XML per CPU second."""
    return len(bz2.decompress(dump.read_bytes())) / 1e6 / run_theirs(dump).cpu


def print_commands(dump: Path) -> None:
    """Print the first table: whole commands with one worker."""
    rounds = [(run_theirs(dump), *(run_ours(dump, name) for name in EXTRACTORS)) for _ in range(ROUNDS)]
    peer, *costs = (min(cost.cpu for cost in runs) for runs in zip(*rounds, strict=True))
    print(f"{dump.name}, one worker, CPU seconds of the whole command")
    print(f"  {'wikiextractor 3.1.0':24} {peer:6.3f} s")
    for name, cpu in zip(EXTRACTORS, costs, strict=True):
        print(f"  {'bertdata, ' + name:24} {cpu:6.3f} s {peer / cpu:6.1f} times as fast")
        from_bz2, from_xml = (measure_extraction_rate(dump, name, packed=packed) for packed in (True, False))
        print(f"  {'':24} MB of XML a CPU second: {from_bz2:.0f} from bz2, {from_xml:.0f} from plain XML")


def print_repeated(dump: Path, copies: int, directory: Path) -> None:
    """Print the second table: what two workers gain, and the peak memory, on a dump of repeated pages."""
    packed = directory / "dump.xml.bz2"
    megabytes = write_repeated(dump, packed, copies) / 1e6
    print(f"{dump.name}, pages repeated {copies} times: {megabytes:.0f} MB of XML; {os.cpu_count()} cores")
    for name in EXTRACTORS:
        pairs = [(run_ours(packed, name), run_ours(packed, name, 2)) for _ in range(PAIRS)]
        times = median(one.wall / two.wall for one, two in pairs)
        peak = max(cost.megabytes for pair in pairs for cost in pair)
        print(f"  {name:8} two workers {times:.2f} times as fast as one; peak memory {peak:.0f} MB")


def main() -> None:
    """Print both tables."""
    # This package is compiled beforehand, as an installed package is.
    compileall.compile_dir(str(Path(bertdata.__file__).parent), quiet=2)
    place = find_kit()
    if place is None:
        sys.exit("benchmarks.extract: no reference kit; set BERTDATA_REFERENCE_KIT")
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for name in (WITH_TEMPLATES, WITHOUT_TEMPLATES):
        print_commands(place / "dump" / name)
    with tempfile.TemporaryDirectory() as directory:
        print_repeated(place / "dump" / WITH_TEMPLATES, copies, Path(directory))


if __name__ == "__main__":
    main()
