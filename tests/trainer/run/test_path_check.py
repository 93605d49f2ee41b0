"""Paths that are wrong are told before torch is imported and workers are started."""

import subprocess
import sys
from pathlib import Path

import pytest

from bertdata.errors import DatasetError, MissingInputError, StorageError, UsageError
from bertdata.io.directory_lock import lock_directory
from tests.support.launching import ROOT
from tests.support.training_runs import words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.settings import Config
from trainer.run import path_check
from trainer.run.path_check import check_paths


def check(place: Path, **keys: object) -> None:
    given = {"generated_data": True, "output_dir": str(place)} | keys
    check_paths([Config.of(**given)])


@pytest.fixture
def used(tmp_path) -> Path:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    return tmp_path / "run"


@pytest.mark.parametrize("more", [[], ["--dist", "--world-size=2"]])
def test_a_wrong_path_is_told_before_torch_is_imported(tmp_path, more):
    """One line, and none of torch's import, which takes seconds, in however many workers."""
    command = [sys.executable, "-m", "trainer", "pretrain", "--config=tiny", "--train-data=missing", *more]
    done = subprocess.run(
        [*command, f"--output-dir={tmp_path / 'run'}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "trainer: error: missing: no such file or directory\n")
    assert not (tmp_path / "run").exists()


def test_each_dataset_of_each_phase_is_looked_for(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    ours = {"generated_data": False, "train_data": str(there)}
    check(tmp_path / "run", **ours)
    for keys in ({"train_data": f"{there}+gone"}, {"eval_data": f"{there},gone"}, {"train_data": "gone*"}):
        with pytest.raises(MissingInputError, match=r"gone.*: no such file"):
            check(tmp_path / "run", **ours | keys)
    run = str(tmp_path / "run")
    phases = [Config.of(**ours, output_dir=run), Config.of(train_data="gone", output_dir=run, phase2=True)]
    with pytest.raises(MissingInputError, match="gone"):
        check_paths(phases)


def test_remote_data_and_generated_data_are_not_looked_for(tmp_path):
    check(tmp_path / "run", generated_data=False, train_data="gs://bucket/data")
    check(tmp_path / "run", train_data="gone")


def test_the_workers_of_a_launcher_leave_it_to_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(path_check, "find_launcher", lambda: "torch_distributed")
    check(tmp_path / "run", generated_data=False, train_data="gone")


def test_a_directory_with_a_run_is_refused_unless_it_goes_on(used):
    with pytest.raises(DatasetError, match="is in use: holds checkpoints; give --resume"):
        check(used)
    for keys in (
        {"resume": True},
        {"resume_step": 4},
        {"phase2": True},
        {"compile_only": True},
        {"overwrite_output_dir": True},
    ):
        check(used, **keys)
    check(used, do_train=False)


def test_a_directory_that_another_run_writes_to_is_refused(tmp_path):
    run = tmp_path / "run"
    with lock_directory(str(run / "unfinished")):
        with pytest.raises(DatasetError, match="another run .* is writing here"):
            check(run)
        with pytest.raises(DatasetError, match="another run .* is writing here"):
            check(run, resume=True)
    check(run)
    assert not run.exists()  # the check leaves nothing


def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below" / "run"):
        with pytest.raises(StorageError, match="/file: is no directory"):
            check(place)
    check(tmp_path / "new" / "below" / "run")
    assert not (tmp_path / "new").exists()


def test_a_directory_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(path_check.os, "access", lambda path, mode: False)
    with pytest.raises(StorageError, match=f"{tmp_path}: may not be written to"):
        check(tmp_path / "run")


@pytest.mark.usefixtures("one_thread")
def test_overwriting_begins_anew_where_a_run_is(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path / "run", "--checkpoint-every=1")
    assert trainer(*run, "--steps=4").status == 0
    done = trainer(*run, "--steps=3", "--seed=9", "--overwrite-output-dir")
    assert done.status == 0, done.err
    assert "4 checkpoints of an earlier run removed" in done.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [1, 2, 3]
    assert (tmp_path / "run" / "training.1.csv").exists()


def test_a_file_of_another_kind_is_not_appended_to_as_mlperfs_log(tmp_path):
    notes = tmp_path / "bert.log"
    notes.write_text("my notes")
    with pytest.raises(UsageError, match="bert.log"):
        check(tmp_path / "run", mllog=True, mllog_file=str(notes))
    notes.write_text(':::MLLOG {"key": "init_start"}')
    check(tmp_path / "run", mllog=True, mllog_file=str(notes))
