"""A tiny model trains with as many threads as it can use, or as the user says; a busy machine is told."""

import os
import time
from types import SimpleNamespace

import pytest
import torch

from tests.support.training_runs import tensors, words
from trainer.checkpoints.reading import choose_checkpoint
from trainer.config.model import ModelConfig
from trainer.run import processor_threads
from trainer.run.processor_threads import (
    BusyProcessorWatch,
    count_useful_threads,
    is_chosen_by_user,
    suit_threads,
)
from trainer.workers.launchers import DEFAULT_THREADS

CORES = 2
CPU = SimpleNamespace(name="cpu")


@pytest.fixture
def two_cores(monkeypatch):
    """A process of two cores whose user has chosen no number of threads."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", DEFAULT_THREADS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processor_threads, "_list_default_threads", lambda: [CORES])
    before = torch.get_num_threads()
    torch.set_num_threads(CORES)
    yield
    torch.set_num_threads(before)


def model(width, layers):
    return ModelConfig(
        vocab_size=100,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64 or 1,
        intermediate_size=4 * width,
    )


@pytest.mark.parametrize(
    ("width", "layers", "rows", "length", "threads"),
    [
        (128, 2, 16, 48, 1),
        (128, 2, 51, 32, 1),
        (64, 12, 16, 128, 1),  # many layers make no layer larger
        (256, 4, 32, 128, 20),
        (128, 2, 32, 128, 5),
        (768, 12, 32, 128, 178),
    ],
)
def test_threads_follow_the_work_of_a_layer(width, layers, rows, length, threads):
    """6 operations for each of a layer's 12 x width x width weights and each token, and those of
    attention.
    """
    work = rows * length * (72 * width**2 + 12 * width * length)
    assert threads == (1 if work < 3e9 else int(work / 1e9))
    assert count_useful_threads(model(width, layers), rows, length) == threads


def test_a_small_model_gets_one_thread_and_a_large_one_those_of_the_machine(two_cores):
    with suit_threads(CPU, model(128, 2), 16, 48) as remark:
        assert torch.get_num_threads() == 1
        assert remark == f" (of {CORES}; micro-batches are small; OMP_NUM_THREADS overrides)"
    assert torch.get_num_threads() == CORES
    with suit_threads(CPU, model(768, 2), 32, 128) as remark:
        assert (torch.get_num_threads(), remark) == (CORES, "")


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_a_variable_of_the_user_decides(two_cores, monkeypatch, name):
    monkeypatch.setenv(name, str(CORES))
    with suit_threads(CPU, model(128, 2), 16, 48) as remark:
        assert (torch.get_num_threads(), remark) == (CORES, "")


def test_a_call_of_the_user_decides(two_cores):
    torch.set_num_threads(CORES + 1)
    with suit_threads(CPU, model(128, 2), 16, 48) as remark:
        assert (torch.get_num_threads(), remark) == (CORES + 1, "")


def test_the_number_that_dist_gives_to_its_workers_is_not_the_users(two_cores, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert is_chosen_by_user(4)
    monkeypatch.setenv(DEFAULT_THREADS, "4")
    assert not is_chosen_by_user(4)
    assert is_chosen_by_user(3), "torch.set_num_threads"


def test_an_accelerator_keeps_its_threads(two_cores):
    with suit_threads(SimpleNamespace(name="cuda"), model(128, 2), 16, 48) as remark:
        assert (torch.get_num_threads(), remark) == (CORES, "")


def test_a_run_says_and_records_its_threads_and_a_resumed_one_has_the_same(
    two_cores, trainer, training_set, tmp_path
):
    told = "1 thread (of 2; micro-batches are small; OMP_NUM_THREADS overrides)"
    more = ("--device=cpu", "--steps=4")
    outcome = trainer(*words(training_set, tmp_path / "whole", *more))
    assert outcome.status == 0, outcome.err
    assert told in outcome.err
    assert told in (tmp_path / "whole" / "dllogger.json").read_text(encoding="utf-8")
    assert torch.get_num_threads() == CORES, "as before the run"
    assert trainer(*words(training_set, tmp_path / "cut", *more, "--steps-this-run=2")).status == 0
    resumed = trainer(*words(training_set, tmp_path / "cut", *more, "--resume"))
    assert told in resumed.err
    assert tensors(tmp_path / "cut", 4) == tensors(tmp_path / "whole", 4)
    assert choose_checkpoint(str(tmp_path / "cut")).name == "step-00000004"


class Watched:
    """A watch on a processor with made-up times."""

    def __init__(self, monkeypatch, *, workers=1, device="cpu"):
        self.said, self.worked = list[str](), 0.0
        monkeypatch.setattr(time, "thread_time", lambda: self.worked)
        runtime = SimpleNamespace(
            collective=SimpleNamespace(size=workers),
            device=SimpleNamespace(name=device),
            log=self.said.append,
        )
        self.watch = BusyProcessorWatch(runtime)  # type: ignore[arg-type]

    def update(self, seconds, worked):
        self.watch.restart()
        self.worked += worked
        self.watch.add(seconds)


def test_updates_that_take_much_longer_than_their_processor_time_are_told_once(monkeypatch, two_cores):
    watched = Watched(monkeypatch)
    for _ in range(9):
        watched.update(1.0, 0.3)
    assert watched.said == []
    for _ in range(9):
        watched.update(1.0, 0.3)
    (line,) = watched.said
    assert line == (
        "warning: updates take 3.3 times as long as the processor works on them, because other programs use "
        "its cores; OMP_NUM_THREADS=1 makes the updates faster as long as they do"
    )


def test_waiting_for_the_first_batch_is_not_blamed_on_other_programs(monkeypatch, two_cores):
    watched = Watched(monkeypatch)
    watched.update(30.0, 1.0)
    for _ in range(20):
        watched.update(1.0, 1.0)
    assert watched.said == []


def test_with_one_thread_there_is_no_number_to_set(monkeypatch, one_thread):
    watched = Watched(monkeypatch)
    for _ in range(2):
        watched.update(20.0, 5.0)
    (line,) = watched.said
    assert line.endswith("; end some of them, or give this run cores of its own")


@pytest.mark.parametrize(
    ("seconds", "worked", "where"),
    [(20.0, 11.0, {}), (20.0, 5.0, {"workers": 2}), (20.0, 5.0, {"device": "cuda"})],
)
def test_nothing_is_told_of_an_idle_machine_of_workers_or_of_an_accelerator(
    monkeypatch, seconds, worked, where
):
    watched = Watched(monkeypatch, **where)
    for _ in range(2):
        watched.update(seconds, worked)
    assert watched.said == []


def test_dist_gives_the_workers_their_threads_and_leaves_none_behind(
    trainer, training_set, tmp_path, monkeypatch
):
    from trainer.workers import launch

    found = []

    def start(size, folder, arguments):
        found.append((os.environ["OMP_NUM_THREADS"], os.environ.get(DEFAULT_THREADS)))
        for number in range(size):
            (folder / f"done.{number}").touch()
        return []

    monkeypatch.setattr(launch, "_launch_processes", start)
    monkeypatch.setattr(launch, "count_available_cores", lambda: 8)
    run = words(training_set, tmp_path / "run", "--dist", "--world-size=2", "--device=cpu")
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert trainer(*run).status == 0
    assert "OMP_NUM_THREADS" not in os.environ
    assert DEFAULT_THREADS not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert trainer(*run).status == 0
    assert found == [("4", "4"), ("3", None)]
