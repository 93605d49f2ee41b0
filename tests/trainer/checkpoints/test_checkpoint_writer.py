"""Checkpoints written beside training: nothing waits for them but the next save and the run's end."""

import os
import signal
import socket
import subprocess
import threading

import pytest

from tests.support.fork_server import forking_python
from tests.support.paths import ROOT
from tests.support.training_runs import WORKER, losses, refuse, tensors, words
from trainer.checkpoints import checkpoint as checkpoints
from trainer.checkpoints.checkpoint import MOMENTS, WEIGHTS, CheckpointWriter, WholeTensors, find_checkpoints
from trainer.checkpoints.reading import read_state, read_tensors
from trainer.errors import NotFiniteError
from trainer.run.evaluation import Evaluation
from trainer.run.training_state import Training

pytestmark = pytest.mark.usefixtures("one_thread")

SECONDS = 30  # until a wait counts as endless


class HeldDisk:
    """Stands in for the function that writes tensors: the write of one checkpoint waits for ``release``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self._step, self._save = step, checkpoints.write_safetensors
        self.was_released_in_time = True
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(checkpoints, "write_safetensors", self)

    def __call__(self, file, tensors):
        if f"step-{self._step:08d}" in str(file.name) and not self.begun.is_set():
            self.begun.set()
            self.was_released_in_time = self.release.wait(SECONDS)
        self._save(file, tensors)

    def release_when_waited_for(self, look=lambda: None) -> None:
        """Release the write as soon as the run waits for it, after a look at the directory."""
        wait = CheckpointWriter.wait

        def release_and_wait(writer, seconds=None):
            if writer._thread.is_alive() and not self.release.is_set():
                assert self.begun.wait(SECONDS)
                look()
                self.release.set()
            return wait(writer, seconds)

        self._monkeypatch.setattr(CheckpointWriter, "wait", release_and_wait)


def before_update(monkeypatch: pytest.MonkeyPatch, number: int, action) -> None:
    update = Training.update

    def watched(self, updates):
        if self.state.step + 1 == number:
            action()
        return update(self, updates)

    monkeypatch.setattr(Training, "update", watched)


def test_training_continues_while_a_checkpoint_is_written(trainer, training_set, tmp_path, monkeypatch):
    run = ("--checkpoint-every=2", "--steps=6")
    assert trainer(*words(training_set, tmp_path / "a", *run)).status == 0
    disk = HeldDisk(monkeypatch, 2)
    before_update(monkeypatch, 4, disk.release.set)
    assert trainer(*words(training_set, tmp_path / "b", *run)).status == 0
    assert disk.begun.is_set()
    assert disk.was_released_in_time
    # The checkpoint holds the state of its update, not of those made while it was written.
    for number in (2, 4, 6):
        assert tensors(tmp_path / "b", number) == tensors(tmp_path / "a", number)


def test_the_next_save_waits_for_the_one_before(trainer, training_set, tmp_path, monkeypatch):
    disk = HeldDisk(monkeypatch, 1)
    disk.release_when_waited_for()
    found, copied = [], WholeTensors._copy_to_host

    def look_and_copy(self, tensors):
        found.append(list(find_checkpoints(str(tmp_path))))
        return copied(self, tensors)

    monkeypatch.setattr(WholeTensors, "_copy_to_host", look_and_copy)
    outcome = trainer(*words(training_set, tmp_path, "--checkpoint-every=1", "--steps=2", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert found == [[], [], [1], [1]]  # before weights and moments of each


@pytest.mark.parametrize(("end", "last"), [("steps", 3), ("sigterm", 2), ("target", 3)])
def test_the_run_ends_only_when_the_checkpoint_is_on_disk(
    trainer, training_set, tmp_path, monkeypatch, end, last
):
    found = []
    disk = HeldDisk(monkeypatch, last)
    disk.release_when_waited_for(lambda: found.append(list(find_checkpoints(str(tmp_path)))))
    if end == "sigterm":
        before_update(monkeypatch, 3, lambda: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(Evaluation, "reaches_target", lambda *_: True)
    more = [f"--eval-data={training_set}", "--eval-every=3", "--eval-examples=8"]
    sizes = ("--warmup=0", f"--steps={4 if end == 'target' else 3}", *more * (end == "target"))
    outcome = trainer(*words(training_set, tmp_path, *sizes))
    assert outcome.status == 0, outcome.err
    assert disk.was_released_in_time
    assert found == [[]]
    assert list(find_checkpoints(str(tmp_path))) == [last]


@pytest.mark.thorough
def test_two_machines_on_one_file_system_write_the_same_checkpoints(training_set, tmp_path):
    """Two workers, each the first of its machine, write to one directory."""
    run = ("--steps=6", "--checkpoint-every=1", "--keep-checkpoints=2")
    with socket.create_server(("127.0.0.1", 0)) as free:
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    common |= {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "PYTHONPATH": str(ROOT)}
    arguments = [forking_python(), str(WORKER), *words(training_set, tmp_path, *run)]
    machines = [
        subprocess.Popen(
            arguments, env=os.environ | common | {"RANK": rank}, stderr=subprocess.PIPE, text=True
        )
        for rank in ("0", "1")
    ]
    try:
        said = [machine.communicate(timeout=120)[1] for machine in machines]
    finally:
        for machine in machines:
            machine.kill()
    assert [machine.returncode for machine in machines] == [0, 0], said
    found = find_checkpoints(str(tmp_path))
    assert list(found) == [5, 6]
    for path in found.values():
        for name in (WEIGHTS, MOMENTS):
            assert read_tensors(path, read_state(path), name)
    assert not (tmp_path / "checkpoints" / "unfinished").exists()


def test_a_failed_write_stops_the_run_and_names_the_file(trainer, training_set, tmp_path, monkeypatch):
    write, failed = checkpoints.write_safetensors, threading.Event()

    def full(file, tensors):
        if "step-00000002" in str(file.name):
            raise OSError(28, "No space left on device")
        write(file, tensors)

    run = CheckpointWriter._run

    def noted(self, write):
        run(self, write)
        failed.set()

    monkeypatch.setattr(checkpoints, "write_safetensors", full)
    monkeypatch.setattr(CheckpointWriter, "_run", noted)
    before_update(monkeypatch, 4, lambda: failed.wait(SECONDS))
    outcome = trainer(*words(training_set, tmp_path, "--checkpoint-every=2", "--keep-checkpoints=1"))
    refuse(outcome, 1, "step-00000002: cannot be written: ", "No space left on device")
    assert len(losses(tmp_path)) in (2, 3)  # it does not train on for nothing once the write has failed
    assert not find_checkpoints(str(tmp_path))
    assert trainer(*words(training_set, tmp_path, "--resume", "--steps=3")).status == 0


def test_the_newest_checkpoint_stays_until_the_next_is_complete(trainer, training_set, tmp_path, monkeypatch):
    disk = HeldDisk(monkeypatch, 4)
    found = []

    def look() -> None:
        disk.begun.wait(SECONDS)
        found.append(list(find_checkpoints(str(tmp_path))))
        disk.release.set()

    before_update(monkeypatch, 5, look)
    outcome = trainer(
        *words(training_set, tmp_path, "--checkpoint-every=2", "--keep-checkpoints=1", "--steps=6")
    )
    assert outcome.status == 0, outcome.err
    assert found == [[2]]
    assert list(find_checkpoints(str(tmp_path))) == [6]


def test_after_another_error_the_checkpoint_is_finished(trainer, training_set, tmp_path, monkeypatch):
    HeldDisk(monkeypatch, 2).release_when_waited_for()

    def fail() -> None:
        raise NotFiniteError("update 3: as by accident")

    before_update(monkeypatch, 3, fail)
    refuse(trainer(*words(training_set, tmp_path, "--checkpoint-every=2")), 1, "as by accident")
    assert list(find_checkpoints(str(tmp_path))) == [2]


def test_a_second_ctrl_c_does_not_wait_for_the_checkpoint(trainer, training_set, tmp_path, monkeypatch):
    disk = HeldDisk(monkeypatch, 2)

    def interrupt() -> None:
        disk.begun.wait(SECONDS)
        raise KeyboardInterrupt

    before_update(monkeypatch, 3, interrupt)
    outcome = trainer(*words(training_set, tmp_path, "--checkpoint-every=2"))
    assert outcome.status == 130
    assert not disk.release.is_set()
    assert not find_checkpoints(str(tmp_path))
    disk.release.set()
