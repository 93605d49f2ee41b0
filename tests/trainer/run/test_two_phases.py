"""One command for both phases."""

import os
import re
import signal
from pathlib import Path
from shlex import split
from shutil import copytree

import pytest
import torch

from bertdata.errors import SettingsError
from tests.support.training_runs import MODEL, losses, refuse, tensors
from tests.support.two_phases import both, of_each_phase
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.config.flags import make_configs
from trainer.run.training_state import Training
from trainer.workers.launchers import find_launcher

HABANA = split(
    "--config habana_large --precision bf16 --batch_size 64 8 --train-data-phase1 phase1 "
    "--train-data-phase2 phase2 --world_size 8 --dist --output-dir run"
)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def whole(training_set, longer_set, tmp_path_factory) -> Path:
    """Both phases in one command with one worker, to compare others with."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("whole") / "run"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert main(both(training_set, longer_set, place)) == 0
    torch.set_num_threads(before)
    return place


def same(run: Path, other: Path) -> None:
    """Both phases left the same losses; after phase 2 the bits are the same."""
    assert losses(run) == losses(other)
    assert (run / "training.1.csv").read_text().count("\n") == 4
    assert tensors(run, 7) == tensors(other, 7)
    assert list(find_checkpoints(str(run))) == [2, 3, 5, 7]


# Meaning of the command line


def test_the_preset_of_both_phases_is_the_presets_of_each():
    for phase, config in enumerate(make_configs(["--config", "habana_large"]), 1):
        (own,) = make_configs(["--config", f"habana_large_phase{phase}"])
        assert config.changed(phase1_end_step=None) == own.changed(phase1_end_step=None)


def test_one_value_counts_for_both_phases():
    first, second = make_configs([*of_each_phase("a", "b"), "--batch_size", "4", "--seed=7"])
    assert (first.update.batch_size, second.update.batch_size, first.data.seed, second.data.seed) == (
        4,
        4,
        7,
        7,
    )
    first, second = make_configs(["--config", "habana_large", "--train-data", "a", "--batch-size=4"])
    assert (
        first.update.batch_size,
        second.update.batch_size,
        first.data.train_data,
        second.data.train_data,
    ) == (4, 4, "a", "a")


def test_with_phase2_only_phase_2_is_run():
    flags = ["--phase2", "--phase1_end_step=7038", "--start_from_ckpt=x"]
    (config,) = make_configs([*HABANA, *flags])
    assert (config.phase, config.schedule.steps, config.data.train_data, config.update.batch_size) == (
        2,
        1563,
        "phase2",
        8,
    )
    start = config.start
    assert (start.phase1_end_step, start.start_from_ckpt) == (7038, "x")


def test_of_a_run_of_both_phases_only_the_first_starts_from_other_weights():
    configs = make_configs([*HABANA, "--start_from_ckpt=x"])
    assert [one.start.start_from_ckpt for one in configs] == ["x", None]


def test_a_command_of_one_phase_is_one_configuration():
    (config,) = make_configs(["--batch_size", "64", "--train_data", "a", "--warmup", "0.5"])
    assert (config.phase, config.update.batch_size, config.data.train_data, config.schedule.warmup) == (
        1,
        64,
        "a",
        0.5,
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--steps", "1", "2", "3"], "steps has 3 values, expected one, or two: phase 1's and phase 2's"),
        (["--batch_size", "64", "x"], "--batch-size is 'x', expected the type integer"),
        (["--batch_size", "64", "0"], "batch_size is 0, expected 1 or more"),
        (["--steps", "9", "4", "--warmup", "0", "5"], "warmup is 5 updates, expected fewer than steps (4)"),
        (["--mode=fast"], "mode is 'fast', expected one of lazy, graph, eager"),
    ],
)
def test_wrong_values_are_named(flags, said):
    with pytest.raises(SettingsError) as caught:
        make_configs(flags)
    assert said in str(caught.value)


def test_a_files_lists_are_checked_too(tmp_path):
    path = tmp_path / "c.json"
    for keys, said in {
        '{"steps": [1, 2, 3]}': "steps has 3 values",
        '{"steps": []}': "steps has 0 values",
        '{"seed": [1, 2]}': "seed is [1, 2], expected an integer",
    }.items():
        path.write_text(keys, encoding="utf-8")
        with pytest.raises(SettingsError, match="c.json: ") as caught:
            make_configs(["--config", str(path)])
        assert said in str(caught.value)


def test_help_tells_of_two_values(trainer):
    helped = trainer("pretrain", "--help")
    assert "A flag with N [N] takes one value, or two: phase 1's and phase 2's." in helped.out
    assert "--batch-size N [N]" in helped.out
    assert "--seed N  " in helped.out


# Runs


def test_both_phases_are_what_two_commands_make(trainer, whole, training_set, longer_set, tmp_path):
    common = "--device cpu --precision fp32 --vocab_size 2000 --global_batch_size 8 --warmup 0"
    common += " --checkpoint-every 2 --phase1_end_step none --no-progress-bar --log-every 1"
    for phase, data, own in (
        (1, training_set, "--max_seq_length 64 --max_predictions_per_seq 10 --batch_size 4 --steps 3"),
        (2, longer_set, "--max_seq_length 96 --max_predictions_per_seq 15 --batch_size 2 --steps 4"),
    ):
        preset = f"--config=habana_large_phase{phase}"
        run = ["pretrain", preset, *split(f"{common} {own}"), *MODEL, f"--train-data={data}"]
        assert trainer(*run, f"--output-dir={tmp_path}").status == 0
    same(tmp_path, whole)


def test_a_run_stopped_in_phase_1_goes_on_there_and_into_phase_2(
    trainer, whole, training_set, longer_set, tmp_path
):
    run = both(training_set, longer_set, tmp_path)
    assert trainer(*run, "--steps-this-run=2").status == 0
    assert list(find_checkpoints(str(tmp_path))) == [2]  # phase 2 did not begin
    refuse(trainer(*run), 2, "is in use", "--resume")
    outcome = trainer(*run, "--resume")
    assert outcome.status == 0
    starts = [line for line in outcome.err.splitlines() if ": updates " in line]
    assert [line.split()[1] for line in starts] == ["resumed", "phase"]
    same(tmp_path, whole)


def test_a_run_stopped_in_phase_2_goes_on_there(trainer, whole, training_set, longer_set, tmp_path):
    run = both(training_set, longer_set, tmp_path)
    assert trainer(*run, "--steps-this-run=3").status == 0
    assert list(find_checkpoints(str(tmp_path))) == [2, 3, 5, 6]
    outcome = trainer(*run, "--resume", "--keep-checkpoints=9")
    assert outcome.status == 0
    assert outcome.err.count(": updates ") == 1
    assert "step-00000006: updates 3 to 4 of 4" in outcome.err
    assert losses(tmp_path) == losses(whole)
    assert tensors(tmp_path, 7) == tensors(whole, 7)
    assert trainer(*run, "--resume").status == 0  # there is nothing left to do
    assert tensors(tmp_path, 7) == tensors(whole, 7)


def test_a_run_killed_between_the_phases_begins_phase_2(trainer, whole, training_set, longer_set, tmp_path):
    run = both(training_set, longer_set, tmp_path)
    assert trainer(*run).status == 0
    for number in (5, 7):
        path = find_checkpoints(str(tmp_path))[number]
        path.rename(tmp_path / path.name)
    assert trainer(*run, "--resume").status == 0
    assert tensors(tmp_path, 7) == tensors(whole, 7)


def test_resume_step_goes_back_into_phase_1(trainer, whole, training_set, longer_set, tmp_path):
    run = both(training_set, longer_set, tmp_path)
    assert trainer(*run).status == 0
    assert trainer(*run, "--resume_step=2", "--keep_checkpoints=1").status == 0
    assert tensors(tmp_path, 7) == tensors(whole, 7)
    assert trainer(*run, "--resume_step=7").status == 0
    refuse(trainer(*run, "--resume_step=6"), 2, "holds no checkpoint 6")


def test_sigterm_in_phase_1_ends_the_run(trainer, training_set, longer_set, tmp_path, monkeypatch):
    update = Training.update

    def interrupted(self, updates):
        if self.state.step == 2:  # the last of phase 1
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, updates)

    monkeypatch.setattr(Training, "update", interrupted)
    outcome = trainer(*both(training_set, longer_set, tmp_path))
    assert outcome.status == 0
    assert "stopped after update 2 as requested" in outcome.err
    assert read_state(find_checkpoints(str(tmp_path))[2]).phase == 1
    assert max(find_checkpoints(str(tmp_path))) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--train-data-phase2=/nowhere"], "/nowhere: no such file or directory"),
        (["--train-data-phase2={one}"], "made with max_seq_length 64"),
        (["--eval_data", "/nowhere"], "/nowhere: no such file or directory"),
        (["--global_batch_size", "8", "9"], "the global batch is 9"),
        (["--max_position_embeddings=64"], "max_position_embeddings 64"),
    ],
)
def test_what_phase_2_lacks_is_found_before_phase_1(trainer, training_set, longer_set, tmp_path, more, said):
    words = both(training_set, longer_set, tmp_path / "run")
    more = [word.format(one=training_set) for word in more]
    if more[0].startswith("--train-data"):  # a repeated flag would unite both
        words = [word for word in words if not word.startswith("--train-data-phase2")]
    refuse(trainer(*words, *more), 2, said)
    assert not (tmp_path / "run").exists()


def test_the_start_says_what_is_trained_on_what(trainer, training_set, longer_set, tmp_path):
    again = tmp_path / "again"
    copytree(longer_set, again)
    united = f"--train-data-phase2={longer_set}+{again}"
    named = [f"--train-data-phase1={training_set}", united, f"--eval-data-phase2={longer_set}"]
    words = both(training_set, longer_set, tmp_path / "run")
    words = [word for word in words if not word.startswith("--train-data")] + named
    err = trainer(*words, "--steps-this-run=1", "--description=a trial").err
    assert "trainer: a trial\n" in err
    assert re.search(rf"phase 1: trains on {training_set}: (\d+) examples of 64 ids, 10 masked\n", err)
    found = re.search(
        rf"phase 2: trains on {longer_set}, {again}: (\d+) examples of 96 ids, 15 masked; "
        rf"evaluates on {longer_set}: (\d+) examples\n",
        err,
    )
    assert found, err
    assert int(found[1]) == 2 * int(found[2])


def test_no_launcher_is_taken_for_one(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "HOROVOD_RANK", "HOROVOD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert find_launcher() == "single"
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert find_launcher() == "torch_distributed"
