"""Estimate of the hours that English Wikipedia takes on a 16-core machine, stage by stage.

The estimate is made from speeds. The speeds of this project, of wikiextractor and of nltk are measured in the
same run. The speed of MLPerf's script was recorded earlier: 171 CPU seconds for a text part of 26.4 MB. All
programs are assumed to be 16 times as fast on 16 cores. Extraction has three rows: one on a dump without
template pages, and one for each extractor on a small Wikipedia with templates, as English Wikipedia has them.
The time to start Python is subtracted from this project's figures.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import corpus
from benchmarks.examples import run_create
from benchmarks.extract import (
    WITH_TEMPLATES,
    WITHOUT_TEMPLATES,
    measure_extraction_rate,
    measure_wikiextractor_rate,
)
from benchmarks.punkt import measure_nltk_rate
from benchmarks.segmenting import copy_kit_files, measure_rate

CORES = 16
XML_MB, TEXT_MB = 75_163, 13_700
ORIGINAL_EXAMPLES_MB_S = 26.4 / 171
PINNED_MB_S = 2.4  # Recorded earlier, because the script needs an older Python than this package.


def main() -> None:
    """Print the table of hours."""
    kit = corpus.find_kit()
    if kit is None:
        sys.exit("benchmarks.wikipedia: no reference kit; set BERTDATA_REFERENCE_KIT")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        dumps = [kit / "dump" / name for name in (WITHOUT_TEMPLATES, WITH_TEMPLATES)]
        plain, templates = (
            (measure_extraction_rate(dump), measure_wikiextractor_rate(dump)) for dump in dumps
        )
        mlperf = measure_extraction_rate(dumps[1], "mlperf")
        segment = measure_rate(copy_kit_files(place), "mlperf")
        part = place / "part"
        part.write_bytes(corpus.make_long_text(10_000_000))
        examples = part.stat().st_size / 1e6 / run_create(part, place / "shards", "native").cpu
    rows = [
        ("extract, no template pages", XML_MB, *plain, "wikiextractor"),
        ("extract, with templates", XML_MB, *templates, "wikiextractor"),
        ("extract --extractor mlperf", XML_MB, mlperf, PINNED_MB_S, "the pinned program"),
        ("segment (13.7 GB)", TEXT_MB, segment, measure_nltk_rate(), "nltk alone"),
        ("create, 512/76, dupe 10", TEXT_MB, examples, ORIGINAL_EXAMPLES_MB_S, "MLPerf's script"),
    ]
    print(f"English Wikipedia on {CORES} cores   MB/s a core   hours    the original's MB/s   hours")
    for stage, megabytes, ours, theirs, name in rows:
        hours, original = (megabytes / speed / CORES / 3600 for speed in (ours, theirs))
        print(f"  {stage:<28} {ours:10.1f} {hours:9.3f}   {theirs:14.2f} {original:12.2f}  ({name})")


if __name__ == "__main__":
    main()
