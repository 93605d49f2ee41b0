"""Runs by a recipe: resumed in each part of it, and a fall of the rate that begins at any checkpoint."""

import json
from pathlib import Path

import pytest

import bertdata as face
from tests.support.training_runs import losses, refuse, tensors, words
from trainer.__main__ import main
from trainer.checkpoints.checkpoint import find_checkpoints

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
@pytest.mark.thorough_after_first
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
    (tmp_path / "older").mkdir()
    outcome = trainer(*words(training_set, tmp_path / "run", f"--resume-from={tmp_path / 'older'}"))
    refuse(outcome, 1, f"{tmp_path / 'older'}: holds no checkpoint of this trainer to resume from")


def test_tokens_give_the_number_of_updates(trainer, training_set, tmp_path):
    given = [word for word in words(training_set, tmp_path, *RECIPE) if not word.startswith("--steps")]
    outcome = trainer(*given, "--train-tokens=3000")
    assert outcome.status == 0, outcome.err
    assert "3,000 tokens: " in outcome.err
    rows = losses(tmp_path)
    assert 6 < len(rows) < 14


MODERNBERT = (
    *("--model-type=modernbert", "--local-attention=16", "--hidden-dropout-prob=0.1"),
    *("--masking=modernbert", "--masked-lm-prob=0.3", "--eval-masked-lm-prob=0.15"),
)


@pytest.fixture(scope="module")
def long_blocks(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory) -> Path:
    """Unmasked blocks of 96 ids at most."""
    place = tmp_path_factory.mktemp("long") / "set"
    sizes = {"max_seq_length": 96, "dupe_factor": 1, "masks": False}
    face.create(corpus, place, vocab=str(small_vocabulary_file), objective="mlm", workers=1, **sizes)
    return place


def test_a_second_phase_has_longer_rows_and_another_theta(trainer, long_blocks, tmp_path):
    """Both phases of ModernBERT's recipe, stopped and resumed in each."""
    short = (f"--train-data-phase1={long_blocks}", f"--train-data-phase2={long_blocks}")
    more = (
        *(*RECIPE, *MODERNBERT, "--max-seq-length", "96", "96", "--global-rope-theta", "10000", "160000"),
        *("--steps", "5", "6", "--lr-decay", "0", "3", "--lr-end-share", "0", "0.001"),
        *("--base-learning-rate", "0.01", "0.004"),
    )
    given = words(None, tmp_path / "whole", *short, *more)
    outcome = trainer(*given)
    assert outcome.status == 0, outcome.err
    first, last = (
        json.loads((folder / "state.json").read_text())
        for folder in (find_checkpoints(str(tmp_path / "whole"))[number] for number in (5, 11))
    )
    assert (first["model"]["global_rope_theta"], last["model"]["global_rope_theta"]) == (10_000, 160_000)
    cut = words(None, tmp_path / "cut", *short, *more)
    assert trainer(*cut, "--steps-this-run=3").status == 0
    assert trainer(*cut, "--resume", "--steps-this-run=4").status == 0
    outcome = trainer(*cut, "--resume")
    assert outcome.status == 0, outcome.err
    assert tensors(tmp_path / "cut", 11) == tensors(tmp_path / "whole", 11)
