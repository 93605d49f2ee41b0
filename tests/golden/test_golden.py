"""Every golden case through both engines, in its container, and what holds for all of them."""

import json
from pathlib import Path

import pytest

from bertdata.examples.mlm.blocks import BREAKS
from bertdata.io.file_check import HashingSink
from bertdata.shards.containers import open_reader
from bertdata.shards.content import compute_content_md5
from bertdata.shards.write import write_examples
from golden.cases import as_expected, as_text, case_names, load_case, make

DIALECTS = {"mlperf", "google", "nvidia", "graphcore"}


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", case_names())
def test_examples_are_the_expected_ones(name, engine):
    case = load_case(name)
    examples, vocabulary = make(case, engine)
    expected = case.examples_file.read_bytes().decode()
    assert as_text(examples, vocabulary, case.settings) == expected
    assert as_expected(examples, case.settings, engine) == json.loads(case.expected_file.read_text())


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", case_names())
def test_container_gives_back_the_expected_examples(name, engine, tmp_path: Path):
    case = load_case(name)
    examples, _ = make(case, engine)
    shard = tmp_path / f"shard.{case.settings.format}"
    with shard.open("wb") as file:
        recorded = write_examples(examples, case.settings, HashingSink(file.write), engine=engine)
    expected = json.loads(case.expected_file.read_text())["content_md5"]
    assert compute_content_md5(str(shard), engine) == expected
    assert recorded in (None, expected)
    with open_reader(str(shard), engine) as reader:
        assert len(reader) == len(examples)
        again = [example for batch in reader.batches(7) for example in batch.examples()]
    assert again == list(examples.batch(0, len(examples)).examples())


def test_every_dialect_and_option_has_a_case():
    settings = [load_case(name).settings for name in case_names()]
    assert {s.dialect for s in settings} == DIALECTS
    assert {s.format for s in settings} == {"tfrecord", "hdf5", "parquet"}
    assert {s.objective for s in settings} == {"bert", "mlm", "sop", "span", "electra"}
    assert any(s.whole_word_mask for s in settings if s.objective == "bert")
    assert any(s.remask for s in settings if s.objective == "bert")
    assert {s.blocks for s in settings if s.objective == "mlm"} == set(BREAKS)
    assert {s.as_original for s in settings if s.objective == "span"} == {True, False}
    assert not all(s.lower_case for s in settings)


def test_sample_corpus_is_as_large_and_as_odd_as_the_golden_readme_says(corpus):
    text = b"".join(Path(part).read_bytes() for part in corpus).decode()
    assert len(text.encode()) >= 60_000
    assert len(text.rstrip("\n").split("\n\n")) >= 40
    for odd in (
        "é",
        "ΟΔΥΣΣΕΥΣ",
        "ς",
        "𠀋",
        "\U0001f970",
        "\u00a0",
        "\u2028",
        "\ufeff",
        "[MASK]",
        "e.g.",
        "\u0301",
    ):
        assert odd in text
    words = text.split()
    assert {100, 101, 200, 201} <= {len(word) for word in words}
