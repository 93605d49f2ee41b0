"""Runs by a recipe: resumed in each part of it, and a fall of the rate that begins at any checkpoint."""

from pathlib import Path

import pytest

from tests.support.training_runs import losses, refuse, tensors, words
from trainer.__main__ import main

pytestmark = pytest.mark.usefixtures("one_thread")

RECIPE = (
    *("--optimiser=stableadamw-modernbert", "--base-learning-rate=0.01", "--warmup=0", "--warmup-tokens=900"),
    *("--batch-size=2", "--accumulation=4", "--batch-warmup-from=2", "--batch-warmup-tokens=1500"),
    *("--checkpoint-every=1", "--keep-checkpoints=20", "--log-every=1"),
)
FALL = ("--steps=12", "--lr-decay=4", "--lr-end-share=0.1")


@pytest.fixture(scope="module")
def straight(training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Warm-up of rate and updates, the stable part, the fall: without a stop."""
    place = tmp_path_factory.mktemp("straight")
    assert main(words(training_set, place, *RECIPE, *FALL)) == 0
    return place


@pytest.fixture(scope="module")
def stable(training_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as one that does not know of its end."""
    place = tmp_path_factory.mktemp("stable")
    assert main(words(training_set, place, *RECIPE, "--steps=1000", "--steps-this-run=9")) == 0
    return place


def test_the_parts_are_there(straight):
    rows = losses(straight)
    rates = [row["lr"] for row in rows]
    assert rates[0] == 0 < rates[1] < rates[2] < 0.01
    assert rates[7] == rates[8] == 0.01
    assert rates[9:] == pytest.approx(
        [0.01 * (0.1 + 0.9 * (1 - share**0.5)) for share in (0.25, 0.5, 0.75)], rel=1e-6
    )


@pytest.mark.parametrize("step", [2, 6, 8, 10])
def test_a_run_resumed_in_any_part_has_the_same_bits(trainer, training_set, straight, tmp_path, step):
    cut = words(training_set, tmp_path, *RECIPE, *FALL)
    assert trainer(*cut, f"--steps-this-run={step}").status == 0
    outcome = trainer(*cut, "--resume")
    assert outcome.status == 0, outcome.err
    assert "warning" not in outcome.err.replace("[UNK]", "")
    assert tensors(tmp_path, 12) == tensors(straight, 12)
    assert losses(tmp_path) == losses(straight)


def test_a_fall_from_a_stable_checkpoint_has_the_bits_of_the_run_that_went_on(
    trainer, training_set, straight, stable, tmp_path
):
    branch = words(training_set, tmp_path, *RECIPE, *FALL)
    source = stable / "checkpoints" / "step-00000008"
    outcome = trainer(*branch, f"--resume-from={source}")
    assert outcome.status == 0, outcome.err
    assert "lr_decay: 0 in the checkpoint, 4 in this run" in outcome.err
    assert tensors(tmp_path, 12) == tensors(straight, 12)
    assert (stable / "checkpoints" / "step-00000009").is_dir()


def test_a_branch_is_resumed_as_a_run_of_its_own(trainer, training_set, straight, stable, tmp_path):
    branch = words(
        training_set, tmp_path, *RECIPE, *FALL, f"--resume-from={stable / 'checkpoints/step-00000008'}"
    )
    assert trainer(*branch, "--steps-this-run=2").status == 0
    refuse(trainer(*branch), 2, "is in use")
    assert trainer(*branch, "--resume").status == 0
    assert tensors(tmp_path, 12) == tensors(straight, 12)


def test_a_branch_of_nothing_is_one_error(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path / "run", f"--resume-from={tmp_path}"))
    refuse(outcome, 1, f"{tmp_path}: holds no checkpoint of this trainer to resume from")


def test_tokens_give_the_number_of_updates(trainer, training_set, tmp_path):
    given = [word for word in words(training_set, tmp_path, *RECIPE) if not word.startswith("--steps")]
    outcome = trainer(*given, "--train-tokens=3000")
    assert outcome.status == 0, outcome.err
    assert "3,000 tokens: " in outcome.err
    rows = losses(tmp_path)
    assert 6 < len(rows) < 14
