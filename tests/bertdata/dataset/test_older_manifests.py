"""Directories that older versions made: read, kept as they are, taken up, or named with the remedy."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertdata.dataset.discover import find_datasets
from bertdata.dataset.manifest import Manifest, parse_manifest
from bertdata.dataset.reader import open_dataset
from bertdata.errors import ManifestError
from tests.support.commands import Program, contents

OLDER = Path(__file__).parent / "older_manifests"
TEXT = OLDER / "text"
VOCABULARY = OLDER / "version_2" / "bert" / "vocab.txt"
SIZES = ("--max-seq-length=24", "--max-predictions-per-seq=4")
SHARES = ("--mask-share=1", "--random-share=0", "--kept-share=0")
MADE = {
    "bert": (*SIZES, "--dupe-factor=2"),
    "binned": (
        *SIZES,
        "--recipe=nvidia",
        "--dupe-factor=1",
        "--format=parquet",
        "--bin-size=12",
        "--no-masks",
    ),
    "shuffled": (
        *SIZES,
        "--dialect=graphcore",
        "--dupe-factor=1",
        "--remask",
        "--shuffle=global",
        "--num-shards=2",
        *SHARES,
    ),
    "mlm": ("--objective=mlm", "--max-seq-length=24", "--format=parquet"),
}
"""What ``create`` made, and with which flags."""
NAMES = (*MADE, "packed", "unverified", "lddl", "squad")
RECORDS = ["text", "tokenizer", "objective", "container"]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A copy of all datasets of version 2."""
    return Path(shutil.copytree(OLDER / "version_2", tmp_path / "older"))


def create(bertdata: Program, output: Path, *flags: str) -> Any:
    return bertdata("create", TEXT, "--output", output, "--vocab", VOCABULARY, "--workers=1", *flags)


def card_of(directory: Path) -> dict[str, bytes]:
    """The dataset card, which version 2 had not."""
    card = directory / "README.md"
    return {card.name: card.read_bytes()} if card.exists() else {}


def manifest_of(directory: Path) -> Manifest:
    return parse_manifest((directory / "manifest.json").read_bytes(), "manifest.json")


def shards_of(directory: Path) -> dict[str, bytes]:
    """The shards, their lengths and indexes: everything but what tells of them."""
    told = ("manifest.json", "MD5SUMS", "README.md", "sources/dataset.json")
    return {name: data for name, data in contents(directory).items() if name not in told}


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_of_version_2_is_sound_and_stays_as_it_is(bertdata, older, name):
    before = contents(older / name)
    for flags in ((), ("--content",), ("--chain",)):
        outcome = bertdata("verify-md5", older / name, *flags)
        assert (outcome.status, outcome.err) == (0, ""), outcome.out
    manifest = manifest_of(older / name)
    assert manifest.dump() == before["manifest.json"]
    assert manifest.md5sums() == before["MD5SUMS"]
    assert contents(older / name) == before


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_version_2_are_read_shown_and_counted(bertdata, older, name):
    manifest = manifest_of(older / name)
    opened = open_dataset(str(older / name))
    found = sum(len(batch) for shard in opened.shards for batch in opened.batches(shard))
    assert found == sum(shard.examples for shard in manifest.shards) > 0
    shard = next(shard.name for shard in manifest.shards if shard.examples)
    shown = bertdata("show", older / name / shard, "--num=1")
    assert shown.status == 0, shown.err
    assert "[CLS]" in shown.out, "the vocabulary beside it is known"
    told = bertdata("stats", older / name, "--json", "--workers=1")
    assert told.status == 0, told.err
    (statistics,) = json.loads(told.out)["datasets"]
    assert statistics["examples"] == found


def test_titles_and_recipes_of_version_2_are_those_of_today(older):
    found = {name: manifest_of(older / name).plan for name in NAMES}
    assert {name: (plan.recipe, plan.title) for name, plan in found.items()} == {
        "bert": ("mlperf", "mlperf"),
        "binned": ("nvidia", "nvidia"),
        "shuffled": ("graphcore", "graphcore"),
        "mlm": (None, "mlm"),
        "packed": ("mlperf", "mlperf"),
        "unverified": (None, "unverified"),
        "lddl": ("mlperf", "mlperf"),
        "squad": (None, "squad"),
    }


@pytest.mark.parametrize("name", MADE)
def test_a_new_dataset_has_the_shards_of_version_2_and_its_settings_in_records(
    bertdata, older, tmp_path, name
):
    assert create(bertdata, tmp_path / "new", *MADE[name]).status == 0
    assert shards_of(tmp_path / "new") == shards_of(older / name)
    value = json.loads((tmp_path / "new" / "manifest.json").read_text())
    before = json.loads((older / name / "manifest.json").read_text())
    assert (value["format_version"], before["format_version"]) == (3, 2)
    assert list(value["settings"]) == RECORDS
    assert manifest_of(older / name).plan.settings.as_json() == value["settings"]
    values = {key: item for record in value["settings"].values() for key, item in record.items()}
    assert values["vocabulary"] == before["vocabulary"]
    assert values["punkt"] == before["punkt"]
    assert values.get("num_shards") == before.get("num_shards")
    assert before["settings"].items() <= {**values, "objective": values["name"]}.items()
    assert {key: value[key] for key in ("recipe", "phase")} == {
        key: before[key] for key in ("recipe", "phase")
    }
    assert bertdata("verify-md5", tmp_path / "new", "--chain").status == 0


@pytest.mark.parametrize("name", MADE)
def test_a_whole_directory_of_version_2_is_kept_by_the_command_that_made_it(bertdata, older, name):
    before = contents(older / name)
    outcome = create(bertdata, older / name, *MADE[name])
    assert outcome.status == 0, outcome.err
    assert "made " not in outcome.err
    assert contents(older / name) == before | card_of(older / name)


def test_a_damaged_shard_of_version_2_is_made_again(bertdata, older):
    before = contents(older / "bert")
    (older / "bert" / "part-00001-of-00500.tfrecord").write_bytes(b"")
    outcome = create(bertdata, older / "bert", *MADE["bert"])
    assert outcome.status == 0, outcome.err
    assert contents(older / "bert") == before


OTHERS = [
    ("--dupe-factor=3", "dupe_factor 2, now 3"),
    ("--random-seed=1", "random_seed 12345, now 1"),
    ("--max-seq-length=32", "max_seq_length 24, now 32"),
    ("--no-lower-case", "lower_case True, now False"),
    ("--dialect=google", "dialect 'mlperf', now 'google'"),
    ("--format=parquet", "format 'tfrecord', now 'parquet'"),
    ("--bin-size=12", "bin_size None, now 12"),
    ("--no-masks", "masks None, now False"),
    ("--shuffle=global --num-shards=2", "shuffle 'none', now 'global, 2 shards'"),
]


@pytest.mark.parametrize("directory", ["bert", "unfinished", "new"])
@pytest.mark.parametrize(("flag", "words"), OTHERS, ids=[flag for flag, _ in OTHERS])
def test_a_directory_of_other_settings_is_refused_by_the_settings_name(
    bertdata, older, directory, flag, words
):
    if directory == "new":
        assert create(bertdata, older / "new", *MADE["bert"]).status == 0
    before = contents(older / directory)
    outcome = create(bertdata, older / directory, *MADE["bert"], *flag.split())
    outcome.assert_one_error(2, "was made with other settings: ", words, "; choose another directory or ")
    assert contents(older / directory) == before


def test_a_half_made_directory_of_version_2_is_finished(bertdata, older, tmp_path):
    shard = older / "unfinished" / "part-00000-of-00500.tfrecord"
    data = shard.read_bytes()
    told = bertdata("verify-md5", older / "unfinished")
    told.assert_one_error(1, "is unfinished: no manifest.json yet; run the command that made it again")
    outcome = create(bertdata, older / "unfinished", *MADE["bert"])
    assert outcome.status == 0, outcome.err
    assert shard.read_bytes() == data, "the noted shard, whose note has no count of lost text, is made again"
    assert create(bertdata, tmp_path / "new", *MADE["bert"]).status == 0
    assert contents(older / "unfinished") == contents(tmp_path / "new")


def test_version_2_is_packed_and_converted_as_before(bertdata, older, tmp_path):
    packed, converted = tmp_path / "packed", tmp_path / "lddl"
    assert bertdata("pack", older / "bert", "--output", packed, "--layout=flat", "--workers=1").status == 0
    assert bertdata("convert", older / "bert", converted, "--to=lddl", "--workers=1").status == 0
    for made, name in ((packed, "packed"), (converted, "lddl")):
        assert shards_of(made) == shards_of(older / name)
        assert manifest_of(made).plan.settings == manifest_of(older / name).plan.settings
        assert list(json.loads((made / "manifest.json").read_text())["settings"]) == RECORDS
        cited = (older / "bert" / "manifest.json").read_bytes()
        assert (made / "sources" / "dataset.json").read_bytes() == cited
        assert bertdata("verify-md5", made, "--chain", "--source", older / "bert").status == 0
    again = bertdata("pack", older / "bert", "--output", older / "packed", "--layout=flat", "--workers=1")
    assert again.status == 0, again.err
    assert contents(older / "packed") == contents(OLDER / "version_2" / "packed") | card_of(older / "packed")


def test_rows_of_files_without_a_manifest_are_kept_too(bertdata, older):
    file, before = older / "bert" / "part-00001-of-00500.tfrecord", contents(older / "unverified")
    flags = ("--unverified", "--vocab", VOCABULARY, "--layout=graphcore", "--workers=1")
    outcome = bertdata("pack", file, "--output", older / "unverified", *flags)
    assert outcome.status == 0, outcome.err
    assert contents(older / "unverified") == before


EDITS = [
    (lambda value: value["settings"].update(dupe_factor=7), "wrong settings digest"),
    (lambda value: value["totals"].update(examples=7), "manifest.json: edited"),
    (lambda value: value.update(phase=1), "MD5SUMS: differs"),
    (lambda value: value.update(recipe="nvidia"), "MD5SUMS: differs"),
    (lambda value: value["vocabulary"].update(tokens=7), "MD5SUMS: differs"),
]


@pytest.mark.parametrize(
    ("change", "words"), EDITS, ids=["setting", "total", "phase", "recipe", "vocabulary"]
)
def test_an_edited_manifest_of_version_2_is_found_out(bertdata, older, change, words):
    path = older / "bert" / "manifest.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1) + "\n")
    outcome = bertdata("verify-md5", older / "bert")
    assert outcome.status == 1
    assert words in outcome.out


WRONG = [
    (lambda value: value.pop("settings"), "'settings' is a required property"),
    (lambda value: value.update(settings=[]), "settings: [] is not of type 'object'"),
    (lambda value: value.pop("vocabulary"), "settings/tokenizer: 'vocabulary' is a required property"),
    (lambda value: value.pop("punkt"), "settings/text: 'punkt' is a required property"),
    (lambda value: value["settings"].update(format="x"), "settings/container/format: 'x' is not one of"),
    (lambda value: value["settings"].pop("random_seed"), "'random_seed' is a required property"),
    (lambda value: value.update(future=1), "'future' was unexpected"),
]


@pytest.mark.parametrize(("change", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_manifest_of_version_2_that_makes_no_sense_is_one_error(bertdata, older, change, words):
    path = older / "bert" / "manifest.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=1) + "\n")
    bertdata("verify-md5", older / "bert").assert_one_error(1, "manifest.json: ", words)


def test_version_1_is_named_with_the_remedy(bertdata, tmp_path):
    old = Path(shutil.copytree(OLDER / "version_1" / "bert", tmp_path / "old"))
    before, shard = contents(old), old / "part-00000-of-00500.tfrecord"
    words = (
        "format version 1, this program reads 2 and 3; remove the directory and make it again: its shards "
    )
    for command in (
        ("verify-md5", old),
        ("verify-md5", old, "--chain"),
        ("show", shard),
        ("stats", old),
        ("pack", old, "--output", tmp_path / "out"),
        ("convert", old, tmp_path / "out", "--to=lddl"),
    ):
        bertdata(*command).assert_one_error(1, f"{old}/manifest.json: {words}")
    create(bertdata, old, *SIZES, "--dupe-factor=1").assert_one_error(1, words)
    with pytest.raises(ManifestError, match=words):
        open_dataset(str(old))
    assert contents(old) == before
    assert create(bertdata, tmp_path / "again", *SIZES, "--dupe-factor=1").status == 0
    again = contents(tmp_path / "again")
    assert {name: again[name] for name in before if name.endswith(".tfrecord")} == {
        name: data for name, data in before.items() if name.endswith(".tfrecord")
    }


def test_several_directories_of_both_versions_are_opened_as_one(bertdata, older, tmp_path):
    assert create(bertdata, tmp_path / "new", *MADE["bert"]).status == 0
    both = open_dataset([str(older / "bert"), str(tmp_path / "new")])
    assert both.examples == 2 * open_dataset(str(older / "bert")).examples
    assert len(find_datasets(str(older / "bert"), exact=True)) == 1
