"""A run that goes on trains what remains: the rest of its epochs, and nothing where its target is reached."""

import shutil
from pathlib import Path

import pytest

from bertdata.dataset.reader import open_dataset
from tests.support.training_runs import losses, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.sections.schedule import ScheduleSection

QUIET = ("--no-progress-bar", "--warmup=0", "--log-every=1000", "--num-hidden-layers=1")


def run(trainer, data: Path, place: Path, *more: object) -> str:
    """A run of an epoch. Returns what it says."""
    given = [word for word in words(data, place, *QUIET, *more) if word != "--steps=10"]
    outcome = trainer(*given)
    assert outcome.status == 0, outcome.err
    return outcome.err


@pytest.mark.parametrize(
    ("sizes", "more"),
    [
        ((16, 64), []),
        ((64, 16), []),
        ((16, 64), ["--warmup-tokens=64"]),  # updates that are counted in tokens
    ],
)
@pytest.mark.thorough_after_first
def test_an_epoch_is_one_pass_whatever_the_size_of_its_updates(trainer, training_set, tmp_path, sizes, more):
    """1 of 1,387 examples in 100 updates of 4 and then 74 of 8 was 0.72 of a pass: 124 of 8 remain."""
    examples = open_dataset(str(training_set)).examples
    place, epoch = tmp_path / "run", ("--num-train-epochs=1", *more)
    run(trainer, training_set, place, *epoch, f"--batch-size={sizes[0]}", "--steps-this-run=4")
    said = run(trainer, training_set, place, *epoch, f"--batch-size={sizes[1]}", "--resume")
    last = read_state(max(find_checkpoints(str(place)).items())[1])
    rest = -(-(examples - 4 * sizes[0]) // sizes[1])
    assert (last.step, last.trained) == (4 + rest, 4 * sizes[0] + rest * sizes[1])
    assert 0 <= last.trained - examples < sizes[1]
    assert f"; 4 are made, of {4 * sizes[0]} examples" in said


@pytest.mark.parametrize("rounding", ["up", "down", "each_up"])
@pytest.mark.parametrize("epochs", [0.1, 0.7, 1, 2.3, 3])
def test_a_resume_without_a_change_has_the_updates_of_the_first_start(rounding, epochs):
    schedule = ScheduleSection(epoch_rounding=rounding)
    for examples, size in ((1387, 4), (405, 8), (488, 61), (488, 7)):
        updates = schedule.updates_of(epochs, examples, size)
        for step in range(updates + 1):
            found = schedule.updates_of(epochs, examples, size, step=step, trained=step * size)
            assert found == updates, (examples, size, step)


def test_an_epoch_that_is_over_has_nothing_left():
    schedule = ScheduleSection()
    assert schedule.updates_of(1, 405, 8, step=110, trained=440) == 110
    assert schedule.updates_of(1, 815 + 400, 8, step=100, trained=400) == 100 + 102  # 101.9 updates


def test_a_run_that_has_reached_its_target_is_over(trainer, training_set, tmp_path):
    place = tmp_path / "run"
    target = ("--steps=60", "--base-learning-rate=0.02", f"--eval-data={training_set}", "--eval-every=4")
    reached = ("--target-accuracy=0.0000001", "--checkpoint-every=1")
    assert "the target accuracy 1e-07 is reached" in run(trainer, training_set, place, *target, *reached)
    step = max(find_checkpoints(str(place)))
    before = tensors(place, step)
    said = run(trainer, training_set, place, *target, *reached, "--resume")
    assert f"update {step} has reached the target accuracy 1e-07" in said
    assert f"nothing is left to do after update {step}" in said
    assert max(find_checkpoints(str(place))) == step
    assert tensors(place, step) == before
    # Without the table, as on another machine, the update is evaluated again, with the same end.
    shutil.copytree(place, tmp_path / "other")
    (tmp_path / "other" / "evaluation.csv").unlink()
    said = run(trainer, training_set, tmp_path / "other", *target, *reached, "--resume")
    assert "was not evaluated; evaluating it now" in said
    assert f"nothing is left to do after update {step}" in said
    # A higher target is trained for.
    said = run(trainer, training_set, place, *target, "--target-accuracy=1", "--resume", "--steps-this-run=1")
    assert "nothing is left" not in said
    assert max(find_checkpoints(str(place))) == step + 1


def test_a_run_whose_updates_are_made_is_over(trainer, training_set, tmp_path):
    run(trainer, training_set, tmp_path / "run", "--steps=2", "--log-every=1")
    before = losses(tmp_path / "run")
    said = run(trainer, training_set, tmp_path / "run", "--steps=2", "--log-every=1", "--resume")
    assert "nothing is left to do after update 2" in said
    assert losses(tmp_path / "run") == before


def test_a_reached_target_is_found_where_a_log_counts_several_steps_per_update(
    trainer, training_set, tmp_path
):
    """The table counts 2 steps per update. It was searched by the update's number, so training went on."""
    words = ("--steps=8", "--steps-per-update=2", f"--eval-data={training_set}", "--eval-every=1")
    words += ("--target-accuracy=0.0000001", "--checkpoint-every=1", "--base-learning-rate=0.02")
    place = tmp_path / "run"
    assert "the target accuracy 1e-07 is reached" in run(trainer, training_set, place, *words)
    step = max(find_checkpoints(str(place)))
    said = run(trainer, training_set, place, *words, "--resume")
    assert "nothing is left to do" in said
    assert max(find_checkpoints(str(place))) == step
