"""Nobody knows the names of an objective's columns: BERT's examples under other names give the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

import bertdata as face
from bertdata.cli.main import main
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.layouts import LAYOUTS
from tests.support.renamed_objective import NAME, RenamedExample

FORMATS = ("tfrecord", "hdf5", "parquet")
OBJECTIVES = ("bert", NAME)
FLAGS = (
    "--max-seq-length=64",
    "--max-predictions-per-seq=10",
    "--dupe-factor=2",
    "--random-seed=1",
    "--workers=1",
)


def create(corpus: list[Path], vocabulary: Path, output: Path, objective: str, *flags: str) -> Path:
    words = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary), *FLAGS, *flags]
    assert main([*words, "--objective", objective]) == 0
    return output


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus by objective."""
    place = tmp_path_factory.mktemp("renamed")
    return {
        objective: create(corpus, small_vocabulary_file, place / str(number), objective)
        for number, objective in enumerate(OBJECTIVES)
    }


def entries(dataset: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((dataset / "manifest.json").read_text())["shards"]
    return found


def contents(dataset: Path) -> list[tuple[str, str, int]]:
    return [(entry["name"], entry["content_md5"], entry["masked_tokens"]) for entry in entries(dataset)]


def values(example: Any) -> list[Any]:
    """The fields of an example of either type, which are in one order."""
    return [getattr(example, name) for name in type(example).__match_args__ or example.__slots__]


def rows(dataset: Path, objective: str) -> list[Any]:
    found = []
    for entry in entries(dataset):
        with open_reader(str(dataset / entry["name"]), objective=objective) as reader:
            assert reader.layout.objective == objective
            found += [example for batch in reader.batches(100) for example in batch.examples()]
    return found


@pytest.mark.parametrize(
    "flags", [*([f"--format={name}"] for name in FORMATS), ["--remask", "--dialect=graphcore"]], ids=str
)
def test_containers_hold_the_same_content(corpus, small_vocabulary_file, datasets, tmp_path, flags):
    for engine in ("native", "python")[: 2 if "--remask" in flags else 1]:
        made = [
            create(corpus[:1], small_vocabulary_file, tmp_path / engine / str(number), one, *flags)
            for number, one in enumerate(OBJECTIVES)
        ]
        assert contents(made[0]) == contents(made[1])
        assert entries(made[1])[0]["masked_tokens"] > 100
        [path] = [made[1] / entry["name"] for entry in entries(made[1])]
        with open_reader(str(path), engine, NAME) as reader:
            assert {type(example) for batch in reader.batches(50) for example in batch.examples()} == {
                RenamedExample
            }


@pytest.mark.parametrize(
    ("layout", "format"), [(one, form) for one in LAYOUTS for form in LAYOUTS[one].formats]
)
def test_layouts_of_packed_rows_hold_the_same_content(bertdata, datasets, tmp_path, layout, format):
    made = {}
    for number, (objective, path) in enumerate(datasets.items()):
        made[objective] = tmp_path / str(number)
        words = (path, "--output", made[objective], "--layout", layout, "--format", format, "--workers=1")
        outcome = bertdata("pack", *words)
        assert outcome.status == 0, outcome.err
    assert contents(made["bert"]) == contents(made[NAME])
    if format == "tfrecord":
        assert [entry["md5"] for entry in entries(made["bert"])] == [
            one["md5"] for one in entries(made[NAME])
        ]
    bert, renamed = rows(made["bert"], "bert"), rows(made[NAME], NAME)
    assert [*map(values, bert)] == [*map(values, renamed)]
    outcome = bertdata("verify-md5", made[NAME], "--content")
    assert outcome.status == 0, outcome.err
    if format != "tfrecord":  # it names its objective by itself
        copy = tmp_path / f"alone.{format}"
        copy.write_bytes((made[NAME] / entries(made[NAME])[0]["name"]).read_bytes())
        with open_reader(str(copy)) as reader:
            assert reader.layout.objective == NAME


@pytest.mark.parametrize("words", [("--to=lddl",), ("--to=nvidia-mlperf", "--num-shards=2", "--shuffled")])
def test_other_programs_containers_hold_the_same_content(bertdata, datasets, tmp_path, words):
    made = {}
    for number, (objective, path) in enumerate(datasets.items()):
        made[objective] = tmp_path / str(number)
        outcome = bertdata("convert", path, made[objective], *words, "--workers=1")
        assert outcome.status == 0, outcome.err
    assert contents(made["bert"]) == contents(made[NAME])
    assert [*map(values, rows(made["bert"], "bert"))] == [*map(values, rows(made[NAME], NAME))]
    name = entries(made[NAME])[0]["name"]
    with open_reader(str(made[NAME] / name)) as reader:
        assert reader.layout.objective == NAME


def test_masks_at_load_are_the_same(datasets):
    opened = [face.open_dataset(str(path)) for path in datasets.values()]
    bert, renamed = ([*data.masked(epoch=3, masked_lm_prob=0.3)] for data in opened)
    assert [*map(values, bert)] == [*map(values, renamed)]
    assert sum(len(example.hidden_at) for example in renamed) > 1000
    batches = [next(data.numpy(batch_size=20)) for data in opened]
    assert all((batches[0][name] == values).all() for name, values in batches[1].items())


def test_stats_and_show_tell_of_the_masks(bertdata, datasets):
    found = []
    for path in datasets.values():
        outcome = bertdata("stats", path, "--json", "--workers=1")
        found.append(json.loads(outcome.out)["datasets"][0]["masks"])
    assert found[0] == found[1]
    shown = [bertdata("show", path / entries(path)[0]["name"]).out for path in datasets.values()]
    assert shown[0].splitlines()[3:] == shown[1].splitlines()[1:]
