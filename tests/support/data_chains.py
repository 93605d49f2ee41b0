"""A chain of steps from a dump to a dataset: articles, parts, shards."""

from pathlib import Path

from bertdata.cli.main import main
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.extract import extract_dump
from tests.support.commands import SMALL
from tests.support.fake_splitters import load_period_splitter
from tests.support.paths import GOLDEN


def make_chain(dump: Path, place: Path, *flags: str) -> None:
    """Make ``extracted``, ``results`` and ``shards`` below a place. flags: further flags of create."""
    extract_dump(dump, place / "extracted")
    files = find_extracted_files([str(place / "extracted")]).files
    settings = SegmentSettings(eval_articles=3, block_size=0.2)
    segment_files(files, str(place / "results"), settings, load_period_splitter)
    parts = sorted(map(str, (place / "results").glob("part-*")))
    words = ["create", *parts, "--output", str(place / "shards"), "--vocab", str(GOLDEN / "vocab.txt")]
    assert main([*words, *SMALL, *flags]) == 0
