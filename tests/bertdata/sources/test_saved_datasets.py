"""Directories that ``datasets`` saved give the rows that ``datasets`` loads, whatever else lies in them."""

from pathlib import Path
from typing import Any

import pytest

from bertdata import segment
from tests.support.commands import Program
from tests.support.paths import GOLDEN

datasets = pytest.importorskip("datasets")

TEXTS = [f"Text number {number}." for number in range(6)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    datasets.disable_progress_bars()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(texts: list[str]) -> Any:
    return datasets.Dataset.from_dict({"text": texts})


def documents(source: str, **settings: Any) -> list[str]:
    segment(source, "parts", sentences="none", workers=1, **settings)
    return Path("parts", "part-00000.txt").read_text().split("\n\n")[:-1]


def loaded(path: str) -> list[str]:
    return list(datasets.load_from_disk(path)["text"])


def test_caches_of_map_and_shuffle_are_no_data() -> None:
    rows(TEXTS).save_to_disk("saved")
    opened = datasets.load_from_disk("saved")
    opened.map(lambda row: {"text": row["text"].lower()})
    opened.shuffle(seed=1)
    assert len(list(Path("saved").glob("cache-*.arrow"))) == 2
    assert documents("saved") == loaded("saved") == TEXTS


def test_shards_of_an_earlier_save_are_no_data() -> None:
    rows(TEXTS).save_to_disk("saved", num_shards=3)
    rows(["New.", "Newer."]).save_to_disk("saved", num_shards=1)
    assert len(list(Path("saved").glob("data-*.arrow"))) == 4
    assert documents("saved") == loaded("saved") == ["New.", "Newer."]


def test_a_shuffled_dataset_has_the_order_in_which_it_was_saved() -> None:
    rows(TEXTS).shuffle(seed=1).save_to_disk("saved")
    assert documents("saved") == loaded("saved") != TEXTS


def test_what_is_left_out_is_told(bertdata: Program) -> None:
    rows(TEXTS).save_to_disk("saved")
    datasets.load_from_disk("saved").shuffle(seed=1)
    outcome = bertdata("segment", "saved", "--sentences", "none", "--output", "parts", "--workers", 1)
    assert outcome.status == 0
    assert "saved: left out 1 (caches or earlier data, state.json does not list them): cache-" in outcome.err


def test_a_cache_named_by_a_pattern_is_refused_with_a_remedy_that_works(bertdata: Program) -> None:
    rows(TEXTS).save_to_disk("saved")
    datasets.load_from_disk("saved").map(lambda row: {"text": row["text"].lower()})
    outcome = bertdata("segment", "saved/*.arrow", "--output", "parts")
    outcome.assert_one_error(2, "saved/state.json does not list it; give the directory: saved")
    assert bertdata("segment", "saved", "--sentences", "none", "--output", "parts").status == 0


def test_several_splits_are_listed_and_each_is_named_by_its_directory(bertdata: Program) -> None:
    splits = datasets.DatasetDict(train=rows(TEXTS), test=rows(["Held out."]))
    splits.save_to_disk("saved")
    for words in (
        ["segment", "saved"],
        ["create", "saved", "--vocab", GOLDEN / "vocab.txt"],
        ["train-vocab", "saved", "--size", 99],
    ):
        outcome = bertdata(*words, "--input-kind", "arrow", "--output", "out.txt")
        outcome.assert_one_error(2, "saved: holds several splits of datasets", "saved/test, saved/train")
    assert documents("saved/train") == TEXTS


def test_a_single_split_needs_no_name() -> None:
    datasets.DatasetDict(train=rows(TEXTS)).save_to_disk("saved")
    assert documents("saved") == TEXTS


def test_a_dataset_below_a_directory_of_other_files_is_read_as_it_says(folder: Path) -> None:
    rows(TEXTS[:2]).save_to_disk("corpus/saved")
    datasets.load_from_disk("corpus/saved").map(lambda row: {"text": row["text"].lower()})
    (folder / "corpus" / "more.jsonl").write_text('{"text": "Of another file."}\n')
    assert documents("corpus") == ["Of another file.", *TEXTS[:2]]


def test_an_index_of_older_versions_and_a_missing_file_are_errors(bertdata: Program) -> None:
    rows(TEXTS).save_to_disk("saved", num_shards=2)
    state = Path("saved/state.json")
    whole = state.read_text()
    state.write_text(whole.replace("{", '{"_indices_data_files": [{"filename": "indices.arrow"}],', 1))
    outcome = bertdata("segment", "saved", "--output", "parts")
    outcome.assert_one_error(2, "saved with an index of .shuffle()", "after .flatten_indices()")
    state.write_text(whole)
    Path("saved/data-00001-of-00002.arrow").unlink()
    outcome = bertdata("segment", "saved", "--output", "parts")
    outcome.assert_one_error(2, "saved/data-00001-of-00002.arrow: is missing, state.json lists it")
