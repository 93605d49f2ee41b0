"""The data scripts of docs/conversion.md against the code: commands run, with the scripts' settings."""

import bz2
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from beam_pipelines.options import make_text_settings, parse_flags
from bertdata.cli.main import main
from bertdata.config.recipes import RECIPES
from tests.support.paths import DUMP, GOLDEN, ROOT
from tests.support.published_commands import commands
from trainer.tasks.classification.presets import TASKS

PAGE = (ROOT / "docs" / "conversion.md").read_text(encoding="utf-8")
TEXT = PAGE.split("\n## NVIDIA's and Habana's data scripts\n")[1].split("\n## ")[0]
BLOCKS = [
    [shlex.split(command) for command in re.split(r"(?<!\\)\n+", block.strip())]
    for block in re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
]
WIKI, WIKI_BOOKS, BOOKS, BEAM, MRPC = [
    [[word for word in command if word.strip()] for command in block] for block in BLOCKS
]
WIKI_BOOKS += [
    [word.replace("wikicorpus_en", "books_wiki_en_corpus") for word in words] for words in WIKI[2:]
]

SHARDING = {"training_shards": 256, "test_shards": 256, "test_fraction": 0.1}
PHASES = [
    {"max_seq_length": 128, "max_predictions_per_seq": 20},
    {"max_seq_length": 512, "max_predictions_per_seq": 80},
]
SETTINGS = {
    "dupe_factor": 5,
    "random_seed": 12345,
    "masked_lm_prob": 0.15,
    "short_seq_prob": 0.1,
    "lower_case": True,
    "format": "hdf5",
}
"""The scripts' settings, and those of both phases."""

SHARDS = {"training_shards": 3, "test_shards": 2}
HDF5 = "hdf5_lower_case_1_seq_len_{max_seq_length}_max_pred_{max_predictions_per_seq}_masked_lm_prob_0.15_"
HDF5 += "random_seed_12345_dupe_factor_5"


def with_few_shards(command: list[str]) -> list[str]:
    """The words after bertdata, for input too small for 512 shards."""
    words = command[1:]
    for name, number in SHARDS.items():
        flag = f"--{name.replace('_', '-')}"
        if flag in words:
            assert words[words.index(flag) + 1] == str(SHARDING[name])
            words[words.index(flag) + 1] = str(number)
    return [*words, "--workers", "1"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the scripts' downloads, tiny ones."""
    dump = tmp_path / "download" / "wikicorpus_en" / "wikicorpus_en.xml.bz2"
    vocabulary = (
        tmp_path / "download" / "google_pretrained_weights" / "uncased_L-24_H-1024_A-16" / "vocab.txt"
    )
    books = tmp_path / "download" / "bookscorpus"
    for directory in (dump.parent, vocabulary.parent, books):
        directory.mkdir(parents=True)
    dump.write_bytes(bz2.compress(DUMP.read_bytes()))
    shutil.copy(GOLDEN / "vocab.txt", vocabulary)
    documents = (GOLDEN / "corpus" / "part-00000-of-00003").read_text().strip().split("\n\n")
    for number, document in enumerate(documents):
        (books / f"{number}.txt").write_text(document)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def manifest(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "manifest.json").read_text())
    return found


@pytest.mark.usefixtures("punkt_tables")
@pytest.mark.parametrize(("block", "name"), [(WIKI, "wikicorpus_en"), (WIKI_BOOKS, "books_wiki_en_corpus")])
def test_the_scripts_steps_leave_their_directories_with_their_settings(
    place: Path, block: list[list[str]], name: str
) -> None:
    for command in block:
        assert main(with_few_shards(command)) == 0
    sharded = place / "sharded_training_shards_256_test_shards_256_fraction_0.1" / name
    text = manifest(sharded)
    assert text["settings"] == {"recipe": "nvidia", "test_fraction": 0.1, "prefix": name, **SHARDS}
    books = [one["name"] for one in text["inputs"] if one.get("kind") == "text"]
    assert len(books) == (len(list((place / "download" / "bookscorpus").iterdir())) if "books" in name else 0)
    for phase in PHASES:
        for ending, kind, shards in (("", "training", 3), (".test", "test", 2)):
            directory = place / HDF5.format(**phase) / f"{name}{ending}"
            made = manifest(directory)
            expected = {**SETTINGS, **phase, "dialect": "nvidia"}
            settings = made | {
                key: value for record in made["settings"].values() for key, value in record.items()
            }
            assert {key: settings[key] for key in expected} == expected
            files = sorted(path.name for path in directory.glob("*.hdf5"))
            assert files == [f"{name}_{kind}_{index}.txt.hdf5" for index in range(shards)]


@pytest.mark.usefixtures("punkt_tables")
def test_books_alone_are_sharded_without_a_dump(place: Path) -> None:
    (command,) = BOOKS
    assert main(with_few_shards(command)) == 0
    text = manifest(place / "sharded_training_shards_256_test_shards_256_fraction_0.1" / "bookscorpus")
    assert {one["kind"] for one in text["inputs"]} == {"text"}
    assert text["settings"]["prefix"] == "bookscorpus"


@pytest.mark.usefixtures("place")
def test_the_beam_command_has_the_same_settings() -> None:
    (command,) = BEAM
    flags, rest = parse_flags(command[3:])
    assert (command[2], rest, flags.books) == ("beam_pipelines.prepare", [], ["download/bookscorpus"])
    text = make_text_settings(flags, RECIPES[flags.recipe])
    assert {name: getattr(text, name) for name in SHARDING} == SHARDING
    assert (text.recipe, text.prefix) == ("nvidia", "books_wiki_en_corpus")


KIT = list(commands("habana-pytorch create_datasets_from_start.sh"))


@pytest.mark.parametrize("command", KIT, ids=lambda command: command["id"])
def test_these_are_the_published_settings(command: dict[str, Any]) -> None:
    expects = command["expects"]["prepare"]
    assert (expects["sharding"], expects["phases"]) == (SHARDING, PHASES)
    assert {name: expects[name] for name in SETTINGS} == SETTINGS
    assert any(word.endswith(expects["vocab"]) for word in WIKI[2])
    assert " ".join(command["argv"]) in re.findall(r"^### .*: `(.*)`$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(
    "command", list(commands("download_glue_data.py")), ids=lambda command: command["id"]
)
def test_the_files_of_mrpc_are_those_that_fine_tuning_reads(command: dict[str, Any]) -> None:
    assert " ".join(command["argv"]) in re.findall(r"^### .*: `(.*)`$", TEXT, re.MULTILINE)
    for path in command["expects"]["files"]:
        assert f"`{path}`" in TEXT
    assert [Path(path).name for path in command["expects"]["files"]] == list(TASKS["mrpc"].files)
    given = MRPC[0][MRPC[0].index("--data-dir") + 1]
    assert {str(Path(path).parent) for path in command["expects"]["files"]} == {given}
