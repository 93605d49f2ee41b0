"""Compiling: a line for each size of a micro-batch, and no part of the speed."""

import time
from types import SimpleNamespace

import pytest
import torch

from tests.support.compiling import capturing
from tests.support.training_runs import words
from trainer.logs.reporter import Reporter
from trainer.run.compiling import CompileTimes
from trainer.run.pending_updates import _compute_update_seconds


def update(*sizes: int, masks: int = 20) -> SimpleNamespace:
    slots = torch.zeros(masks)
    batches = [SimpleNamespace(input_ids=torch.zeros(size), masked_lm_ids=slots) for size in sizes]
    return SimpleNamespace(batches=batches)


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The time, which passes only when it is told to."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: now.seconds)
    return now


def test_each_size_is_told_once_with_its_seconds(clock):
    lines = list[str]()
    times = CompileTimes(lines.append)

    def make() -> str:
        clock.seconds += 12.4
        return "made"

    assert times.measure([update(29_568, 29_952), update(29_568)], make) == ("made", pytest.approx(12.4))
    assert times.measure([update(29_952)], make) == ("made", 0.0)
    assert times.measure([update(512)], make) == ("made", pytest.approx(12.4))
    assert times.measure([update(512, masks=21)], make) == ("made", pytest.approx(12.4))  # another shape
    first, *others = lines
    assert first == "compiled for 29,568 and 29,952 tokens in 12 s"
    assert others == ["compiled for 512 tokens in 12 s"] * 2


def test_the_seconds_of_an_update_are_those_of_the_ones_that_compiled_nothing():
    assert _compute_update_seconds(20.0, [12.0, 0.0, 0.0]) == pytest.approx(4.0)
    assert _compute_update_seconds(20.0, [12.0, 8.0]) == pytest.approx(10.0)
    assert 0 < _compute_update_seconds(11.9, [12.0, 0.0]) < 1e-5  # another worker was slower


def test_a_runs_speed_is_that_of_updates_that_compile_nothing(trainer, training_set, tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.logs.reporter.UNTIMED_UPDATES", 0)
    monkeypatch.setattr(CompileTimes, "measure", lambda self, updates, make: (make(), seconds.pop(0)))
    seconds = [1e6, 0.0, 1e6, 0.0]
    timed = list[tuple[int, bool]]()
    report_update = Reporter.update

    def note(self: Reporter, record) -> None:
        timed.append((record.step, record.is_timed))
        report_update(self, record)

    monkeypatch.setattr(Reporter, "update", note)
    run = words(training_set, tmp_path, "--num-hidden-layers=1", "--steps=4", "--compile", "--log-every=4")
    with capturing():
        outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert timed == [(1, False), (2, True), (3, False), (4, True)]
