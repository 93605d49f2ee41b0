"""A recipe's run by two workers: packed and masked at load, killed, gone on with to the bit."""

import json

import pytest

from tests.support.training_runs import losses, start_workers, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.thorough]

RECIPE = (
    *("--optimiser=stableadamw-modernbert", "--base-learning-rate=0.01", "--warmup=0", "--warmup-tokens=900"),
    *("--batch-size=2", "--accumulation=3", "--batch-warmup-from=4", "--batch-warmup-tokens=1500"),
    *("--packed-accumulation=rows", "--pack-on-load", "--masking=dynamic", "--masked-lm-prob=0.3"),
    *("--steps=10", "--lr-decay=4", "--lr-end-share=0.1", "--checkpoint-every=1", "--keep-checkpoints=20"),
)
MODERNBERT = ("--model-type=modernbert", "--local-attention=16", "--hidden-dropout-prob=0.1")
RUNS = {
    "copies": MODERNBERT,
    "stages": ("--strategy=pipelined", "--bandwidth=10", "--batch-warmup-from=2"),
    "shards": ("--strategy=sharded",),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_killed_recipe_goes_on_to_the_bit(kind, block_set, tmp_path, monkeypatch):
    """Killed where updates grow, and where the rate falls."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    outcome = start_workers("torchrun", 2, *words(block_set, whole, *RECIPE, *RUNS[kind]))
    assert outcome.status == 0, outcome.err
    assert "they grow from 1 to" in outcome.err
    run = words(block_set, cut, *RECIPE, *RUNS[kind])
    for number, (update, *resume) in enumerate(((3,), (9, "--resume"))):
        monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 1, "update": update}))
        assert start_workers("torchrun", 2, *run, *resume).status != 0, number
        assert max(find_checkpoints(str(cut))) == update - 1
    monkeypatch.delenv("TRAINER_ACCIDENT")
    outcome = start_workers("torchrun", 2, *run, "--resume")
    assert outcome.status == 0, outcome.err
    assert losses(cut) == losses(whole)
    assert tensors(cut, 10) == tensors(whole, 10)
