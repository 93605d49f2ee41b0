"""The text stages on the golden dump; ``python -m golden.stages`` writes golden/text anew."""

import shutil
import sys
from pathlib import Path

from bertdata._native import Engine
from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentCounts, SegmentSettings

GOLDEN = Path(__file__).parent
DUMP = GOLDEN / "dump" / "allerwiki-20200101-pages-articles.xml"
EXTRACTED = GOLDEN / "dump" / "extracted"
TEXT = GOLDEN / "text"

SETTINGS = {
    "mlperf": SegmentSettings(eval_articles=3, block_size=0.2),
    "nvidia": SegmentSettings(recipe="nvidia", training_shards=3, test_shards=2, prefix="sample"),
}


def make_text(recipe: str, directory: Path, engine: Engine) -> SegmentCounts:
    """Segment the golden articles as the recipe does."""
    settings = SETTINGS[recipe]
    files = find_extracted_files([str(EXTRACTED)]).files
    return segment_files(files, str(directory), settings, LoadSplitter("3.4.5", engine))


def main() -> int:
    for recipe in SETTINGS:
        shutil.rmtree(TEXT / recipe, ignore_errors=True)
        print(recipe, make_text(recipe, TEXT / recipe, "python"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
