"""Workers that the command starts itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import split

import pytest

from tests.support import commands
from tests.support.commands import Outcome
from tests.support.fork_server import forking_python, program_behind
from tests.support.launching import HOROVODRUN, ROOT, launch
from tests.support.training_runs import MODEL, WORKER, errors, losses, refuse
from tests.support.two_phases import both
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.settings import Config
from trainer.errors import WorkerLost
from trainer.workers.launch import launch_workers

pytestmark = pytest.mark.usefixtures("one_thread")


def start(*arguments: object) -> subprocess.Popen[str]:
    return commands.start(*arguments, module="trainer", python=forking_python(), cwd=ROOT)


def end(process: subprocess.Popen[str]) -> Outcome:
    return commands.finish(process, seconds=120)


@pytest.mark.thorough
def test_habanas_command_trains_both_phases_with_two_workers(trainer, training_set, longer_set, tmp_path):
    whole, place = tmp_path / "whole", tmp_path / "run"
    assert trainer(*both(training_set, longer_set, whole)).status == 0
    two = ("--world_size", "2", "--dist", "--mode", "lazy")
    outcome = end(start(*both(training_set, longer_set, place, "--batch_size", 4, 2, *two)))
    assert outcome.status == 0, outcome.err
    assert "each of 2 workers x 1 micro-batch x 4 = 8 examples" in outcome.err
    assert "each of 2 workers x 2 micro-batches x 2 = 8 examples" in outcome.err
    assert "accepted, without effect on device cpu: mode" in outcome.err
    for ours, others in zip(losses(place), losses(whole), strict=True):
        assert ours == pytest.approx(others, abs=1e-5)
    assert list(find_checkpoints(str(place))) == [2, 3, 5, 7]


def long_run(place: Path) -> list[str]:
    data = "--generated-data --vocab-size=100 --max-seq-length=16 --max-predictions-per-seq=2 --batch-size=2"
    run = f"--steps=1000000 --warmup=0 --log-every=1000000 --no-progress-bar {data} --dist --world_size=2"
    return ["pretrain", *MODEL, *split(run), f"--output-dir={place}"]


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"ended before it said {text!r}")


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_command_has_the_workers_save(tmp_path, number):
    process = start(*long_run(tmp_path))
    wait_for(process, ": updates 0 to 1000000")
    time.sleep(1)
    process.send_signal(number)
    outcome = end(process)
    assert outcome.status == 0, outcome.err
    assert outcome.err.count("as requested; --resume continues") == 1
    (checkpoint,) = find_checkpoints(str(tmp_path))
    assert f"stopped after update {checkpoint} as requested" in outcome.err


def children(process: subprocess.Popen[str]) -> list[int]:
    threads = Path(f"/proc/{program_behind(process.pid)}/task").glob("*/children")
    return [int(child) for one in threads for child in one.read_text().split()]


@pytest.mark.thorough
def test_the_workers_end_with_a_command_that_was_killed(tmp_path):
    process = start(*long_run(tmp_path))
    wait_for(process, ": updates 0 to 1000000")
    started = children(process)
    process.kill()
    outcome = end(process)  # reads until the last worker has closed its pipe
    assert outcome.err.count("as requested; --resume continues") == 1
    assert len(started) == 2
    assert len(find_checkpoints(str(tmp_path))) == 1


@pytest.mark.thorough
def test_a_lost_worker_is_told_in_one_line(tmp_path):
    process = start(*long_run(tmp_path))
    wait_for(process, ": updates 0 to 1000000")
    os.kill(children(process)[1], signal.SIGKILL)
    refuse(end(process), 1, "worker 1 of 2 was lost: its process ended")


@pytest.mark.thorough
def test_what_every_worker_finds_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run = [*long_run(tmp_path / "run"), "--device=cuda", "--world_size=3"]
    refuse(end(start(*run)), 2, "of 3: device 'cuda' is not there")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "training.csv").touch()
    refuse(end(start(*long_run(tmp_path / "used"))), 2, "is in use: holds training.csv")


@pytest.mark.thorough
def test_files_of_the_users_named_as_the_packages_do_not_stop_the_workers(tmp_path):
    """A trainer.py in the working directory was imported instead: status 0, and nothing was trained."""
    for name in ("trainer.py", "json.py", "torch.py"):
        (tmp_path / name).write_text("raise SystemExit(0)")
    for name in ("schemas", "bertdata"):
        (tmp_path / name).mkdir()
    place = tmp_path / "run"
    command = [str(Path(sys.executable).with_name("bertdata-train")), *long_run(place), "--steps=2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert list(find_checkpoints(str(place))) == [2]


def test_workers_that_end_without_having_trained_are_an_error(tmp_path, monkeypatch):
    by_path = tmp_path / "by_path.py"
    by_path.write_text("")
    monkeypatch.setattr("trainer.workers.launch._BY_PATH", by_path)
    config = Config.of(dist=True, world_size=2)
    with pytest.raises(WorkerLost, match="2 of 2 workers ended before their work was done"):
        launch_workers(config)


@pytest.mark.thorough
def test_where_a_launcher_seems_to_have_started_the_command_dist_is_not_the_remedy(tmp_path):
    """It was: "world_size is 2, found 1: give --dist"."""
    process = subprocess.run(
        [sys.executable, "-m", "trainer", *long_run(tmp_path / "run")],
        env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"},
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert "RANK, WORLD_SIZE are set as by a launcher, so --dist does nothing: unset them" in process.stderr


def test_one_worker_is_none_to_start(trainer, tmp_path):
    run = [*long_run(tmp_path), "--steps=2", "--world_size=1"]
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert "each of 1 worker " in outcome.err


def test_a_number_of_workers_needs_workers(trainer, tmp_path):
    run = long_run(tmp_path / "run")
    refuse(trainer(*run, "--dist=false"), 2, "world_size is 2, found 1", "give --dist")
    refuse(trainer(*run, "--world_size=none"), 2, "world_size is missing: give --world-size")
    assert not (tmp_path / "run").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["torchrun", HOROVODRUN])
def test_under_a_launcher_the_number_is_checked(launcher, tmp_path):
    outcome = launch(launcher, 2, WORKER, *long_run(tmp_path / "run"), "--world_size=3", seconds=120)
    assert outcome.status != 0
    (line,) = errors(outcome)
    assert "world_size is 3, found 2" in line
    outcome = launch(launcher, 2, WORKER, *long_run(tmp_path / "run"), "--steps=2", seconds=120)
    assert outcome.status == 0, outcome.err
