"""Masked blocks learned by two workers that the command starts: as one does, killed, gone on with."""

import json

import pytest

from tests.support.fine_tuning import evaluations
from tests.support.training_runs import losses, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.thorough]

TWO = ("--dist", "--world-size=2")


def test_two_workers_are_one_that_accumulates_and_go_on_to_the_bit(trainer, block_set, tmp_path, monkeypatch):
    one, two, cut = (tmp_path / name for name in ("one", "two", "cut"))
    more = (f"--eval-data={block_set}", "--checkpoint-every=5")
    assert trainer(*words(block_set, one, *more, "--accumulation=2")).status == 0
    outcome = start_workers("alone", 1, *words(block_set, two, *more, *TWO))
    assert outcome.status == 0, outcome.err
    assert "each of 2 workers x 1 micro-batch x 4 = 8 examples" in outcome.err
    for ours, others in zip(losses(two), losses(one), strict=True):
        assert ours == pytest.approx(others, abs=1e-5)
    (ours,), (others,) = evaluations(two), evaluations(one)
    assert ours == pytest.approx(others, abs=1e-5)

    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 1, "update": 8}))
    run = words(block_set, cut, *more)
    assert start_workers("torchrun", 2, *run).status != 0
    assert list(find_checkpoints(str(cut))) == [5]
    monkeypatch.delenv("TRAINER_ACCIDENT")
    outcome = start_workers("alone", 1, *run, *TWO, "--resume")
    assert outcome.status == 0, outcome.err
    assert losses(cut) == losses(two)
    assert tensors(cut, 10) == tensors(two, 10)
    assert evaluations(cut) == evaluations(two)
