"""The golden dump through every stage, each held against its golden files, by both engines."""

import hashlib
from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.extract import extract_dump
from golden.stages import DUMP, EXTRACTED, GOLDEN, SETTINGS, TEXT, make_text
from tests.support.dumps import files

# Of `bertdata create golden/text/mlperf/part-* --vocab golden/vocab.txt --recipe habana --format tfrecord`.
SHARD_MD5 = {
    "phase1": "aa08ae51a8bf505f83ef46f27cb29ad7",
    "phase2": "4b1082414b45afda9139be9b757ca238",
}


def test_extracted_articles_are_the_golden_ones(tmp_path):
    extract_dump(DUMP, tmp_path / "extracted")
    assert files(tmp_path / "extracted") == files(EXTRACTED)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("recipe", sorted(SETTINGS))
def test_text_is_the_golden_text(recipe, engine, tmp_path):
    counts = make_text(recipe, tmp_path / "text", engine)
    assert files(tmp_path / "text") == files(TEXT / recipe)
    assert counts.articles == (83 if recipe == "mlperf" else 80)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_odd_articles_become_the_golden_part(engine, tmp_path):
    odd, settings = GOLDEN / "articles", SegmentSettings(eval_articles=0)
    files = find_extracted_files([str(odd / "wiki_00")]).files
    assert segment_files(files, str(tmp_path / "text"), settings, LoadSplitter("3.4.5", engine)).articles == 2
    part = "part-00000-of-00500"
    assert (tmp_path / "text" / part).read_bytes() == (odd / part).read_bytes()


@pytest.mark.parametrize("engine", ["native", "python"])
def test_shards_of_both_phases_are_the_golden_ones(engine, tmp_path):
    parts = [str(path) for path in sorted((TEXT / "mlperf").glob("part-*"))]
    vocabulary = str(Path(TEXT).parent / "vocab.txt")
    flags = ["--recipe", "habana", "--format", "tfrecord", "--engine", engine, "--workers", "1"]
    assert main(["create", *parts, "--output", str(tmp_path / "out"), "--vocab", vocabulary, *flags]) == 0
    for phase, md5 in SHARD_MD5.items():
        shard = tmp_path / "out" / phase / "part-00000-of-00500.tfrecord"
        assert hashlib.md5(shard.read_bytes()).hexdigest() == md5


def test_the_withheld_articles_are_in_no_part():
    evaluation = (TEXT / "mlperf" / "eval.txt").read_text(encoding="utf-8")
    parts = "".join(path.read_text(encoding="utf-8") for path in (TEXT / "mlperf").glob("part-*"))
    articles = [article for article in evaluation.split("\n\n") if article.strip()]
    assert len(articles) == len((TEXT / "mlperf" / "eval.md5").read_text().split()) == 3
    assert not any(article in parts for article in articles)
