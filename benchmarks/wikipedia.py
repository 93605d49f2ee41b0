"""Hours of one 16-core machine for English Wikipedia, stage by stage, from rates measured now.

The originals' rates are measured in the same run where they can be had (wikiextractor, nltk); the
original example maker's is the one on record, 171 CPU seconds for a part of 26.4 MB. Perfect scaling
over cores is assumed for all of them alike.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import corpus, measure
from benchmarks.examples import create
from benchmarks.extract import write_repeated
from benchmarks.punkt import nltk_rate
from benchmarks.segmenting import copies_of_the_kit, rate

CORES = 16
XML_MB, TEXT_MB = 75_163, 13_700
ORIGINAL_EXAMPLES_MB_S = 26.4 / 171


def extraction_rates(place: Path, kit: Path) -> tuple[float, float]:
    """MB of XML a CPU second: ours, wikiextractor's own command."""
    dump = place / "dump.xml.bz2"
    megabytes = write_repeated(kit / "dump" / "enwiki-p10-p30302-shortened.xml.bz2", dump, 4) / 1e6
    ours = ["bertdata", "extract", str(dump), "--output", str(place / "e"), "--workers", "1"]
    theirs = ["wikiextractor.WikiExtractor", str(dump), "-o", str(place / "w"), "--processes", "1", "-q"]
    costs = [measure.command(sys.executable, "-m", *words).cpu for words in (ours, theirs)]
    return megabytes / costs[0], megabytes / costs[1]


def main() -> None:
    kit = corpus.kit()
    if kit is None:
        sys.exit("benchmarks.wikipedia: no reference kit; set BERTDATA_REFERENCE_KIT")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        extract, wikiextractor = extraction_rates(place, kit)
        segment = rate(copies_of_the_kit(place), "mlperf")
        part = place / "part"
        part.write_bytes(corpus.long_text(10_000_000))
        examples = part.stat().st_size / 1e6 / create(part, place / "shards", "native").cpu
    rows = [
        ("extract (75 GB of XML)", XML_MB, extract, wikiextractor, "wikiextractor"),
        ("segment (13.7 GB)", TEXT_MB, segment, nltk_rate(), "nltk alone"),
        ("create, 512/76, dupe 10", TEXT_MB, examples, ORIGINAL_EXAMPLES_MB_S, "MLPerf's script"),
    ]
    print(f"English Wikipedia on {CORES} cores   MB/s a core   hours    the original's MB/s   hours")
    for stage, megabytes, ours, theirs, name in rows:
        hours, original = (megabytes / speed / CORES / 3600 for speed in (ours, theirs))
        print(f"  {stage:<28} {ours:10.1f} {hours:9.3f}   {theirs:14.2f} {original:12.2f}  ({name})")


if __name__ == "__main__":
    main()
