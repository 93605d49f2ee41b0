"""Training on datasets of older manifests: as on new ones, or refused with the remedy."""

import json

import pytest

from bertdata.cli.main import main as bertdata
from tests.support.paths import ROOT
from tests.support.training_runs import losses, refuse, words

OLDER = ROOT / "tests" / "bertdata" / "dataset" / "older_manifests"
VERSION_2 = OLDER / "version_2"
SHORT = ("--steps=2", "--warmup=1")


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_a_dataset_of_version_2_trains_as_the_same_one_of_version_3(trainer, tmp_path):
    flags = ("--max-seq-length=24", "--max-predictions-per-seq=4", "--dupe-factor=2", "--workers=1")
    places = ("--output", str(tmp_path / "new"), "--vocab", str(VERSION_2 / "bert" / "vocab.txt"))
    assert bertdata(["create", str(OLDER / "text"), *places, *flags]) == 0
    for dataset, name in ((VERSION_2 / "bert", "old-run"), (tmp_path / "new", "new-run")):
        outcome = trainer(*words(dataset, tmp_path / name, *SHORT, f"--eval-data={dataset}"))
        assert outcome.status == 0, outcome.err
    assert losses(tmp_path / "old-run") == losses(tmp_path / "new-run")
    for run in ("old-run", "new-run"):
        assert (tmp_path / run / "vocab.txt").read_bytes() == (VERSION_2 / "bert" / "vocab.txt").read_bytes()
        casing = json.loads((tmp_path / run / "tokenizer_config.json").read_text())
        assert casing == {"do_lower_case": True}
    more = words(tmp_path / "new", tmp_path / "old-run", "--steps=3", "--warmup=1", "--resume")
    resumed = trainer(*more)
    assert resumed.status == 0, resumed.err
    assert [row["step"] for row in losses(tmp_path / "old-run")] == [1, 2, 3], "the same data by another path"


@pytest.mark.usefixtures("one_thread")
def test_packed_rows_of_version_2_train(trainer, tmp_path):
    outcome = trainer(*words(VERSION_2 / "packed", tmp_path / "run", *SHORT))
    assert outcome.status == 0, outcome.err
    assert len(losses(tmp_path / "run")) == 2


def test_version_1_is_named_with_the_remedy(trainer, tmp_path):
    outcome = trainer(*words(OLDER / "version_1" / "bert", tmp_path / "run"))
    refuse(outcome, 1, "manifest.json: format version 1, ", "remove the directory and make it again")
