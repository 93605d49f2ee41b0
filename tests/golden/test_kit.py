"""Every output of the original programs in the reference kit, remade and compared."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest

from bertdata.cli.main import main
from bertdata.examples.bert.settings import BertSettings
from bertdata.shards.content import compute_content_md5
from tests.support.example_flags import create_flags

NAME = re.compile(r"(\w+?)__(.+?)__s(\d+)__p(\d+)__d(\d+)__seed(\d+)(?:__([\w-]+))?\.(tfrecord|hdf5)")
SINGLE_CASES = 26


@dataclass(frozen=True)
class Case:
    """One run of an original program, as the kit's file names tell it."""

    name: str
    text: str
    settings: BertSettings


def parse_case(name: str) -> Case | None:
    match = NAME.fullmatch(name)
    if match is None or name.startswith("pick-eval"):
        return None
    program, text, length, predictions, dupe, seed, option, container = match.groups()
    settings = BertSettings(
        dialect=program,
        max_seq_length=int(length),
        max_predictions_per_seq=int(predictions),
        dupe_factor=int(dupe),
        random_seed=int(seed),
        lower_case=option != "no-lower-case",
        whole_word_mask=option == "whole-word-mask",
        remask=option == "remask",
        format=container,
    )
    return Case(name, text, settings)


@pytest.fixture(scope="session")
def expected(kit: Path) -> dict[str, dict]:
    return json.loads((kit / "expected.json").read_text())


def create(case: Case, kit: Path, directory: Path, engine: str) -> Path:
    """The shard that ``bertdata create`` makes for the case."""
    part, vocabulary = kit / "results" / case.text, kit / "vocab" / "bert-base-uncased.txt"
    status = main(["create", str(part), "--output", str(directory), "--vocab", str(vocabulary),
                   "--engine", engine, "--workers", "1", *create_flags(case.settings)])  # fmt: skip
    assert status == 0
    return directory / f"{case.text}.{case.settings.format}"


def assert_matches(shard: Path, wanted: dict) -> None:
    if shard.suffix == ".tfrecord":
        assert hashlib.md5(shard.read_bytes()).hexdigest() == wanted["content_md5"]
        assert shard.stat().st_size == wanted["bytes"]
    else:
        assert_matches_hdf5(shard, wanted["datasets"])
    manifest = json.loads((shard.parent / "manifest.json").read_text())
    assert [entry["examples"] for entry in manifest["shards"]] == [wanted["examples"]]


def assert_matches_hdf5(shard: Path, wanted: dict[str, dict]) -> None:
    with h5py.File(shard) as file:
        assert set(file) == set(wanted)
        for name, dataset in wanted.items():
            assert str(file[name].dtype) == dataset["dtype"]
            assert list(file[name].shape) == dataset["shape"]
            values = np.ascontiguousarray(file[name][()], dtype="<i4")
            assert hashlib.md5(values.tobytes()).hexdigest() == dataset["md5_le_int32"], name


# Names are read from the kit at run time; numbers keep collection possible without it.
@pytest.mark.parametrize("number", range(SINGLE_CASES))
def test_native_engine_makes_what_the_original_made(number, expected, kit, tmp_path):
    case = [case for name in sorted(expected) if (case := parse_case(name))][number]
    assert_matches(create(case, kit, tmp_path / "out", "native"), expected[case.name])


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(13))
def test_python_engine_makes_what_the_original_made_of_the_evaluation_text(number, expected, kit, tmp_path):
    cases = [case for name in sorted(expected) if (case := parse_case(name)) and case.text == "eval.txt"]
    case = cases[number]
    assert_matches(create(case, kit, tmp_path / "out", "python"), expected[case.name])


def test_no_case_of_the_kit_is_left_out(expected):
    singles = [case for name in expected if (case := parse_case(name))]
    assert len(singles) == SINGLE_CASES
    assert sum(case.text == "eval.txt" for case in singles) == 13
    rest = {name for name in expected if parse_case(name) is None}
    assert rest == {"mlperf-multi-a.tfrecord", "mlperf-multi-b.tfrecord", PICKED}


ENGINES = pytest.mark.parametrize("engine", ["native", pytest.param("python", marks=pytest.mark.thorough)])
PICKED = "pick-eval__mlperf__eval.txt__s512__p76__d10__n100.tfrecord"


@ENGINES
def test_two_inputs_to_two_outputs_as_the_original_deals_them(engine, expected, kit, tmp_path):
    inputs = ",".join(str(kit / "results" / name) for name in ("eval.txt", "part-00001-of-00500"))
    outputs = [tmp_path / name for name in ("mlperf-multi-a.tfrecord", "mlperf-multi-b.tfrecord")]
    assert main([
        "create-pretraining-data", f"--input_file={inputs}", f"--output_file={','.join(map(str, outputs))}",
        f"--vocab_file={kit / 'vocab' / 'bert-base-uncased.txt'}", "--max_seq_length=128",
        "--max_predictions_per_seq=20", "--dupe_factor=2", "--random_seed=12345", f"--engine={engine}",
    ]) == 0  # fmt: skip
    for output in outputs:
        assert compute_content_md5(str(output), engine) == expected[output.name]["content_md5"]
        assert output.stat().st_size == expected[output.name]["bytes"]


@ENGINES
def test_picked_evaluation_examples_are_the_originals(engine, expected, kit, tmp_path):
    case = parse_case("mlperf__eval.txt__s512__p76__d10__seed12345.tfrecord")
    shard = create(case, kit, tmp_path / "out", "native")
    picked = tmp_path / PICKED
    places = [f"--input_tfrecord={shard}", f"--output_tfrecord={picked}", "--num_examples_to_pick=100"]
    shape = ["--max_seq_length=512", "--max_predictions_per_seq=76"]
    assert main(["pick-eval", *places, *shape, "--engine", engine]) == 0
    assert hashlib.md5(picked.read_bytes()).hexdigest() == expected[PICKED]["content_md5"]
    assert picked.stat().st_size == expected[PICKED]["bytes"]
