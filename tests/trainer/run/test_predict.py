"""Words guessed at [MASK] by a run: those of transformers with the same weights."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from tests.support.small_models import in_transformers
from tests.support.training_runs import refuse, words
from trainer.__main__ import main
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.source import open_checkpoint
from trainer.model.headed import BertForPreTraining

TEXT = "The [MASK] of the old city is Été [MASK] ."


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A finished run of three updates on a copy of the training set, in a directory beside it."""
    place = tmp_path_factory.mktemp("predicting")
    shutil.copytree(training_set, place / "set")
    assert main(words(place / "set", place / "run", "--steps=3", "--no-logs")) == 0
    return place / "run"


def test_words_and_probabilities_are_those_of_transformers(trainer, run):
    checkpoint = open_checkpoint(str(run))
    model = BertForPreTraining(checkpoint.expect_config())
    assert fill_model(model, checkpoint) == []
    tokenizer = transformers.BertTokenizerFast(vocab=str(run / "vocab.txt"))
    batch = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        logits = in_transformers(model)(**batch).prediction_logits
    shares = logits[0].softmax(1)[batch["input_ids"][0] == tokenizer.mask_token_id]
    values, ids = shares.topk(7)
    for source in (run, run / "checkpoints" / "step-00000003"):
        outcome = trainer("predict", source, TEXT, "--num=7", "--json")
        assert outcome.status == 0
        guesses = json.loads(outcome.out)
        expected = [tokenizer.convert_ids_to_tokens(one.tolist()) for one in ids]
        assert [[word for word, _ in one] for one in guesses] == expected
        assert [[share for _, share in one] for one in guesses] == [
            pytest.approx(one.tolist(), rel=1e-4) for one in values
        ]


def test_five_words_stand_on_a_line_for_each_mask(trainer, run):
    outcome = trainer("predict", run, TEXT)
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert len(lines) == 2
    assert all(line.count(", ") == 4 and line.count("%") == 5 for line in lines)


def test_a_run_works_from_any_directory_without_its_data(trainer, training_set, tmp_path, monkeypatch):
    """Its data was named by a relative path; its casing is kept beside its vocabulary."""
    shutil.copytree(training_set, tmp_path / "here" / "set")
    monkeypatch.chdir(tmp_path / "here")
    assert main(words("set", "run", "--steps=1", "--warmup=0", "--no-logs")) == 0
    expected = trainer("predict", "run", TEXT, "--json").out
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tmp_path / "here" / "run", "elsewhere")
    shutil.rmtree("here")
    for source in ("elsewhere", "elsewhere/checkpoints/step-00000001"):
        assert trainer("predict", source, TEXT, "--json").out == expected
    config = Path("elsewhere", "tokenizer_config.json")
    assert json.loads(config.read_text()) == {"do_lower_case": True}
    config.write_text('{"do_lower_case": false}\n')
    shouted = TEXT.upper()
    assert trainer("predict", "elsewhere", shouted, "--json").out != expected
    assert trainer("predict", "elsewhere", shouted, "--json", "--lower-case").out == expected


def test_unverified_data_leave_the_given_vocabulary_in_the_run(trainer, training_set, tmp_path):
    shard = next(training_set.glob("*.tfrecord"))
    vocabulary = training_set / "vocab.txt"
    (tmp_path / "set").mkdir()
    shutil.copy(shard, tmp_path / "set")
    given = (
        "--unverified",
        f"--vocab={vocabulary}",
        "--vocab-size=2000",
        "--steps=1",
        "--warmup=0",
        "--no-logs",
    )
    assert trainer(*words(tmp_path / "set", tmp_path / "run", *given)).status == 0
    assert (tmp_path / "run" / "vocab.txt").read_bytes() == vocabulary.read_bytes()
    assert trainer("predict", tmp_path / "run", TEXT).status == 0


def test_wrong_input_is_one_line(trainer, run, tmp_path):
    refuse(trainer("predict", run, "no mask here"), 2, "has no [MASK]")
    refuse(
        trainer("predict", run, "[MASK] " * 600),
        2,
        "sequences of 602 ids, the model has max_pos",
    )
    outcome = trainer("predict", run, "[MASK]", "--num=0")
    assert outcome.status == 2
    (line,) = outcome.err.splitlines()
    assert "--num: '0' is out of range, expected 1 or more" in line
