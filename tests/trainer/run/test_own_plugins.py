"""Runs with a user's own objects in the place of every name that a configuration may have."""

import json

import pytest

from tests.support.own_plugins import HERE, Counting
from tests.support.training_runs import losses, refuse, tensors, words

RATE = 2e-4
NAMED = ["optimiser", "lr-schedule", "masking", "device", "collective", "strategy", "model-type"]


def test_an_own_optimiser_and_its_own_schedule_train(trainer, training_set, tmp_path):
    """The schedule's rates are those of its formula; the updates are AdamW's of the same decay and rates."""
    own = (f"--optimiser={HERE}:OPTIMISER", f"--base-learning-rate={RATE}")
    assert trainer(*words(training_set, tmp_path / "own", *own)).status == 0
    assert [row["lr"] for row in losses(tmp_path / "own")] == [RATE] * 5 + [RATE / 2] * 5
    same = ("--optimiser=adamw", "--weight-decay=0.02", f"--lr-schedule={HERE}:HALVES", own[1])
    assert trainer(*words(training_set, tmp_path / "same", *same)).status == 0
    assert tensors(tmp_path / "own", 10) == tensors(tmp_path / "same", 10)


@pytest.mark.parametrize(
    ("key", "name", "built_in"),
    [
        ("masking", "MASKING", "dynamic"),
        ("device", "Processor", "cpu"),
        ("collective", "Alone", "single"),
        ("strategy", "Counting", "replicated"),
        ("model-type", "Shape", "bert"),
    ],
)
def test_an_own_object_trains_as_the_one_it_is_made_of(
    trainer, training_set, tmp_path, small_vocabulary_file, key, name, built_in
):
    counted = Counting.updates
    common = ("--device=cpu", f"--vocab={small_vocabulary_file}", "--steps=4")
    made = {}
    for place, value in (("own", f"{HERE}:{name}"), ("built_in", built_in)):
        outcome = trainer(*words(training_set, tmp_path / place, *common, f"--{key}={value}"))
        assert outcome.status == 0, outcome.err
        made[place] = tensors(tmp_path / place, 4)
    assert made["own"] == made["built_in"]
    assert Counting.updates - counted == (4 if name == "Counting" else 0)


def test_a_run_with_own_objects_is_resumed(trainer, training_set, tmp_path):
    own = (f"--optimiser={HERE}:OPTIMISER", f"--masking={HERE}:MASKING", f"--strategy={HERE}:Counting")
    assert trainer(*words(training_set, tmp_path / "whole", *own)).status == 0
    assert trainer(*words(training_set, tmp_path / "cut", *own, "--steps-this-run=6")).status == 0
    assert trainer(*words(training_set, tmp_path / "cut", *own, "--resume")).status == 0
    assert tensors(tmp_path / "cut", 10) == tensors(tmp_path / "whole", 10)


def test_an_own_kind_of_model_is_in_the_checkpoint_and_evaluated(trainer, training_set, tmp_path):
    own = words(training_set, tmp_path, f"--model-type={HERE}:Shape", "--steps=3")
    assert trainer(*own).status == 0
    (state,) = tmp_path.glob("checkpoints/*/state.json")
    assert json.loads(state.read_text())["model"]["model_type"] == f"{HERE}:Shape"
    outcome = trainer("evaluate", f"--output-dir={tmp_path}", f"--eval-data={training_set}")
    assert outcome.status == 0, outcome.err


@pytest.mark.parametrize("key", NAMED)
def test_an_own_name_that_is_not_there_is_one_line(trainer, training_set, tmp_path, key):
    outcome = trainer(*words(training_set, tmp_path / "run", f"--{key}=no_such_module:NAME"))
    refuse(outcome, 2, "'no_such_module:NAME': No module named 'no_such_module'")
    outcome = trainer(*words(training_set, tmp_path / "run", f"--{key}=nothing"))
    refuse(outcome, 2, f"{key.replace('-', '_')} is 'nothing', expected one of ", " or package.module:NAME")
    assert not (tmp_path / "run").exists()


def test_a_schedule_that_asks_for_an_unknown_key_is_one_line(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path / "run", f"--lr-schedule={HERE}:OF_ANOTHER_KEY"))
    said = "OF_ANOTHER_KEY: a keyword of its formula, base_learning_rates is not a known key"
    refuse(outcome, 2, said, "; the nearest known is base_learning_rate")
