"""Our commands against the figures that the original programs gave on the golden inputs."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.cli.main import main
from bertdata.shards.content import compute_content_md5
from bertdata.text.cleaning import clean_by_table, clean_lines
from golden.cases import Case, case_names, load_case
from golden.stages import EXTRACTED
from tests.support.commands import files_below
from tests.support.example_flags import create_flags, script_flags
from tests.support.paths import GOLDEN

ORIGINALS: dict[str, Any] = json.loads((GOLDEN / "originals.json").read_text(encoding="utf-8"))
ENGINES = ("native", "python")
SEGMENT_FLAGS = {
    "mlperf": ("--eval-articles=3", "--block-size=0.2"),
    "nvidia": ("--recipe=nvidia", "--training-shards=3", "--test-shards=2"),
}


def file_md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def examples_of(directory: Path) -> list[int]:
    """The number of examples in each shard, as the manifest tells it."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    return [shard["examples"] for shard in manifest["shards"]]


def input_paths(case: Case) -> list[str]:
    return [str(GOLDEN / name) for name in case.inputs]


@pytest.mark.parametrize("name", ORIGINALS["inputs"])
def test_the_input_is_the_one_that_the_originals_read(name):
    assert file_md5(GOLDEN / name) == ORIGINALS["inputs"][name]


def test_every_case_of_berts_and_every_golden_text_has_an_original():
    assert sorted(ORIGINALS["examples"]) == case_names("bert")
    text = [f"text/{name}" for name in files_below(GOLDEN / "text")]
    assert sorted(ORIGINALS["text"]) == ["cleaning/markup.cleaned.txt", *text]
    named = {figure["program"] for kind in ("examples", "text") for figure in ORIGINALS[kind].values()}
    assert named == set(ORIGINALS["programs"])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in ORIGINALS["examples"] if len(load_case(name).inputs) == 1])
def test_create_makes_what_the_original_made(name, engine, tmp_path):
    case, original = load_case(name), ORIGINALS["examples"][name]
    places = ["--output", str(tmp_path / "out"), "--vocab", str(GOLDEN / "vocab.txt"), "--workers", "1"]
    flags = [*create_flags(case.settings), "--engine", engine]
    assert main(["create", *input_paths(case), *places, *flags]) == 0
    shard = tmp_path / "out" / f"{case.inputs[0]}.{case.settings.format}"
    assert compute_content_md5(str(shard), engine) == original["content_md5"]
    assert examples_of(tmp_path / "out") == [original["examples"]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in ORIGINALS["examples"] if name.startswith("mlperf")])
def test_the_drop_in_makes_what_mlperfs_script_made(name, engine, tmp_path, capsys):
    case, original = load_case(name), ORIGINALS["examples"][name]
    output = tmp_path / "out.tfrecord"
    places = [f"--input_file={','.join(input_paths(case))}", f"--output_file={output}"]
    flags = [f"--vocab_file={GOLDEN / 'vocab.txt'}", *script_flags(case.settings), f"--engine={engine}"]
    assert main(["create-pretraining-data", *places, *flags]) == 0
    assert file_md5(output) == original["content_md5"]
    assert f"{output}: {original['examples']} examples, " in capsys.readouterr().out


@pytest.mark.parametrize("recipe", SEGMENT_FLAGS)
def test_segment_makes_what_the_original_made(recipe, tmp_path):
    words = ["segment", str(EXTRACTED), "--output", str(tmp_path), "--workers", "1"]
    assert main([*words, *SEGMENT_FLAGS[recipe]]) == 0
    originals = {
        Path(name).name: figure["md5"]
        for name, figure in ORIGINALS["text"].items()
        if name.startswith(f"text/{recipe}/")
    }
    assert originals
    for name, md5 in originals.items():
        assert file_md5(tmp_path / name.replace("sample_", "wikicorpus_en_")) == md5, name


def test_markup_is_cleaned_as_by_the_original():
    markup, original = (GOLDEN / "cleaning" / "markup.txt").read_bytes(), ORIGINALS["text"]
    for cleaned in (clean_lines(markup), clean_by_table(markup)):
        assert hashlib.md5(cleaned).hexdigest() == original["cleaning/markup.cleaned.txt"]["md5"]
