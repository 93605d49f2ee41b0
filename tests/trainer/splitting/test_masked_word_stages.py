"""Masked blocks learned by two stages or by shards: as one process learns them, killed, gone on with."""

import json

import pytest

from tests.support.fine_tuning import evaluations
from tests.support.training_runs import losses, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.splitting.plan.plan import read_plan

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.thorough]

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")
SPLIT = {"pipelined": ("--strategy=pipelined", "--bandwidth=10"), "sharded": ("--strategy=sharded",)}


@pytest.mark.parametrize("strategy", SPLIT)
def test_a_split_model_learns_what_one_process_does(strategy, trainer, block_set, tmp_path):
    split, alone, plan = tmp_path / "split", tmp_path / "alone", tmp_path / "plan.json"
    more = ("--steps=6", f"--eval-data={block_set}", *NO_DROPOUT)
    run = words(block_set, split, *more, *SPLIT[strategy], f"--save-plan={plan}")
    outcome = start_workers("torchrun", 2, *run)
    assert outcome.status == 0, outcome.err
    made = read_plan(str(plan))
    assert (made.strategy, made.devices, made.head) == (strategy, 2, "masked words")
    assert trainer(*words(block_set, alone, *more, "--accumulation=2")).status == 0
    for ours, others in zip(losses(split), losses(alone), strict=True):
        assert ours == pytest.approx(others, abs=2e-5)
    (ours,), (others,) = evaluations(split), evaluations(alone)
    assert ours == pytest.approx(others, abs=2e-5)
    measured = ("evaluate", f"--eval-data={block_set}", f"--output-dir={split}", f"--plan={plan}")
    outcome = start_workers("torchrun", 2, *measured)
    assert outcome.status == 0, outcome.err
    assert f"masked_lm_accuracy {ours['masked_lm_accuracy']:.5f}" in outcome.err


@pytest.mark.parametrize("more", [(), ("--recompute=always",)])
@pytest.mark.parametrize("strategy", SPLIT)
def test_a_split_modernbert_learns_what_one_process_does(strategy, more, trainer, block_set, tmp_path):
    """With dropout, which each layer draws from a seed of its own."""
    split, alone = tmp_path / "split", tmp_path / "alone"
    shape = ("--model-type=modernbert", "--num-hidden-layers=4", "--local-attention=8")
    given = ("--steps=4", *shape)
    run = words(block_set, split, *given, *SPLIT[strategy], *more)
    outcome = start_workers("torchrun", 2, *run)
    assert outcome.status == 0, outcome.err
    assert trainer(*words(block_set, alone, *given, "--accumulation=2")).status == 0
    for ours, others in zip(losses(split), losses(alone), strict=True):
        assert ours == pytest.approx(others, abs=2e-5)


@pytest.mark.parametrize("model", ["bert", "modernbert"])
@pytest.mark.parametrize("strategy", SPLIT)
def test_a_split_model_is_killed_and_goes_on_to_the_bit(strategy, model, block_set, tmp_path, monkeypatch):
    """Packed at load, with masks that are drawn at load."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    more = (f"--eval-data={block_set}", "--checkpoint-every=3", "--pack-on-load", "--masking=dynamic")
    more = (*more, f"--model-type={model}")
    assert start_workers("torchrun", 2, *words(block_set, whole, *more, *SPLIT[strategy])).status == 0
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 1, "update": 8}))
    run = words(block_set, cut, *more, *SPLIT[strategy])
    assert start_workers("torchrun", 2, *run).status != 0
    assert list(find_checkpoints(str(cut))) == [3, 6]
    monkeypatch.delenv("TRAINER_ACCIDENT")
    outcome = start_workers("torchrun", 2, *run, "--resume")
    assert outcome.status == 0, outcome.err
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
    assert evaluations(cut) == evaluations(whole)
