"""Both programs and the pipelines take ~ wherever a path is given, and commas in directories' names."""

import json
import shutil
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from tests.support.training_runs import MODEL, RUN, words
from trainer.checkpoints.checkpoint import find_checkpoints

SIZES = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1"]


@pytest.fixture
def home(corpus, small_vocabulary_file, training_set, tmp_path, monkeypatch) -> Path:
    """A home directory with a part, a vocabulary and a dataset, and a working directory beside it."""
    place = tmp_path / "home"
    place.mkdir()
    shutil.copy(corpus[0], place / "part")
    shutil.copy(small_vocabulary_file, place / "vocab.txt")
    shutil.copytree(training_set, place / "data")
    monkeypatch.setenv("HOME", str(place))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield place
    assert list((tmp_path / "work").iterdir()) == []


def test_bertdata_makes_a_dataset_at_home(bertdata, home):
    done = bertdata("create", "~/part", "--output=~/set", "--vocab=~/vocab.txt", "--workers=1", *SIZES)
    assert done.status == 0, done.err
    assert (home / "set" / "manifest.json").is_file()
    settings = '[tokenizer]\nvocab = "~/vocab.txt"\n'
    (home / "settings.toml").write_text(settings)
    done = bertdata("create", "~/part", "--output=~/other", "--config=~/settings.toml", "--workers=1", *SIZES)
    assert done.status == 0, done.err
    assert (home / "set" / "MD5SUMS").read_bytes() == (home / "other" / "MD5SUMS").read_bytes()
    done = bertdata(
        *("create-pretraining-data", "--input_file=~/part,~/part", "--output_file=~/a,~/b"),
        *("--vocab_file=~/vocab.txt", "--max_seq_length=64", "--max_predictions_per_seq=10"),
    )
    assert done.status == 0, done.err
    assert (home / "b").is_file()


@pytest.mark.thorough
def test_the_pipeline_makes_a_dataset_at_home(home):
    given = ["--input=~/part", "--output=~/set", "--vocab=~/vocab.txt", *SIZES]
    assert prepare(given) == 0
    assert (home / "set" / "manifest.json").is_file()


def test_the_trainer_trains_at_home(trainer, home):
    outcome = trainer(*words(None, Path("~/run"), "--train-data=~/data", "--steps=1", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert list(find_checkpoints(str(home / "run"))) == [1]
    (home / "run.json").write_text(json.dumps({"train_data": "~/data", "output_dir": "~/other"}))
    outcome = trainer("pretrain", *MODEL, *RUN, "--config=~/run.json", "--steps=1", "--warmup=0")
    assert outcome.status == 0, outcome.err
    assert list(find_checkpoints(str(home / "other"))) == [1]


@pytest.mark.parametrize("data", ["co,mma", "co,mma/", "co,mma/*.tfrecord", "co,mma+da+ta/*.tfrecord"])
def test_a_directory_with_a_comma_in_its_name_is_found(trainer, home, data):
    shutil.copytree(home / "data", home / "co,mma")
    shutil.copytree(home / "data", home / "da+ta")
    paths = "+".join(f"~/{path}" for path in data.split("+", 1))
    outcome = trainer(*words(None, Path("~/run"), f"--train-data={paths}", "--steps=1", "--warmup=0"))
    assert outcome.status == 0, outcome.err
