"""Stages in processes of their own train and measure as one process with the same micro-batches does."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from tests.support.launching import ROOT, launch
from tests.support.split_training import Result, Trial, train
from trainer.collectives.single import Single
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.strategies.pipelined import TIED

pytestmark = pytest.mark.usefixtures("one_thread")

WORKER = ROOT / "tests" / "support" / "split_worker.py"
DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
PRE_NORM = {
    "megatron_residual_connection": True,
    "scale_query_key": True,
    "deep_weight_init": True,
    "initializer_range": 0.02,
}
BF16 = {"precision": "bf16", "optimiser": "adamw"}

# With one micro-batch every sum has the same order as in one process.
EXACT = {
    "lamb": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT),
    "bf16": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT, settings=BF16),
    "pre-norm": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT | PRE_NORM),
    "pre-norm bf16": Trial(stages=2, micro_batches=1, updates=3, model=PRE_NORM, settings=BF16),
    "rows": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT, settings={"rows": True}),
}
CLOSE = {
    "2 stages": Trial(stages=2, updates=20, model=DROPOUT, evaluates=True),
    "adamw": Trial(stages=2, updates=8, settings={"optimiser": "adamw"}),
    "pre-norm of 4": Trial(stages=2, updates=8, model=PRE_NORM),
    "lengths": Trial(stages=2, updates=8, fill=0.5),
    "4 stages": Trial(stages=4, updates=20, model=DROPOUT, evaluates=True),
    "2 x 2": Trial(stages=2, copies=2, micro_batches=8, updates=20, model=DROPOUT, evaluates=True),
    "more stages than micro-batches": Trial(stages=4, micro_batches=2, updates=4),
}
RECOMPUTED = {name: replace(CLOSE[name], recomputes=True) for name in ("2 stages", "pre-norm of 4")}
TRIALS = EXACT | CLOSE | {f"recomputed {name}": trial for name, trial in RECOMPUTED.items()}


@cache
def alone(trial: Trial) -> Result:
    """The result of one process, which has the whole model and all micro-batches."""
    return train(replace(trial, stages=1, copies=1), Single(Cpu(Config.of())))


@pytest.fixture(scope="module")
def by_stages(tmp_path_factory) -> Mapping[str, list[Result]]:
    """The results of each worker, by rank."""
    place = tmp_path_factory.mktemp("stages")
    for workers in (2, 4):
        trials = {name: trial for name, trial in TRIALS.items() if trial.workers == workers}
        (place / "trials").write_bytes(pickle.dumps(trials))
        outcome = launch("torchrun", workers, WORKER, place / "trials", place, seconds=240)
        assert outcome.status == 0, outcome.err
    return {
        name: [torch.load(place / f"{name}-{rank}.pt", weights_only=False) for rank in range(trial.workers)]
        for name, trial in TRIALS.items()
    }


def difference(found: Tensor, wanted: Tensor) -> float:
    """The norm of the difference over that of the wanted tensor."""
    return float((found - wanted).norm() / wanted.norm())


def matters(name: str) -> bool:
    """False for biases of keys: the loss does not depend on them, their gradient is rounding alone."""
    return not name.endswith("key.bias")


@pytest.mark.parametrize("name", TRIALS)
def test_stages_start_with_the_weights_of_one_process_to_the_bit(name, by_stages):
    wanted, found = alone(TRIALS[name]).first, by_stages[name]
    assert {key for one in found for key in one.first} == set(wanted)
    assert all(torch.equal(weight, wanted[key]) for one in found for key, weight in one.first.items())


@pytest.mark.parametrize("name", EXACT)
def test_with_one_micro_batch_training_has_the_bits_of_one_process(name, by_stages):
    wanted, found = alone(TRIALS[name]), by_stages[name]
    assert set(found[0].gradients) & set(found[1].gradients) == {TIED}
    for one in found:
        assert all(torch.equal(value, wanted.gradients[key]) for key, value in one.gradients.items())
        assert all(torch.equal(value, wanted.weights[key]) for key, value in one.weights.items())
    assert torch.equal(torch.stack(found[1].values), torch.stack(wanted.values))


@pytest.mark.parametrize("name", CLOSE)
def test_first_gradients_are_those_of_one_process(name, by_stages):
    """To the bit, but for the word embeddings, whose two uses are added up by stage, not by micro-batch.

    Means over copies, and products with more padding, are sums in another order.
    """
    trial, wanted = TRIALS[name], alone(TRIALS[name]).gradients
    is_exact = trial.copies == 1 and trial.fill == 1.0
    for one in by_stages[name]:
        for key, gradient in one.gradients.items():
            if is_exact and key != TIED:
                assert torch.equal(gradient, wanted[key]), key
            elif matters(key):
                assert difference(gradient, wanted[key]) < (1e-7 if is_exact else 1e-5), key


@pytest.mark.parametrize("name", CLOSE)
def test_after_up_to_20_updates_weights_are_those_of_one_process(name, by_stages):
    wanted = alone(TRIALS[name])
    assert all(not torch.equal(wanted.weights[key], wanted.first[key]) for key in wanted.weights)
    for one in by_stages[name]:
        for key, weight in one.weights.items():
            if matters(key):
                assert difference(weight, wanted.weights[key]) < 1e-6, key


@pytest.mark.parametrize("name", CLOSE)
def test_both_copies_of_the_word_embeddings_stay_the_same_to_the_bit(name, by_stages):
    held = [one.weights[TIED] for one in by_stages[name] if TIED in one.weights]
    assert len(held) == 2 * TRIALS[name].copies
    assert all(torch.equal(weight, held[0]) for weight in held)


@pytest.mark.parametrize("name", CLOSE)
def test_only_the_last_stage_reports_the_losses_of_one_process(name, by_stages):
    trial, wanted = TRIALS[name], torch.stack(alone(TRIALS[name]).values)
    reported = [torch.stack(one.values) for one in by_stages[name]]
    assert not torch.stack(reported[: -trial.copies]).any()
    torch.testing.assert_close(sum(reported), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", RECOMPUTED)
def test_recomputed_activations_change_no_bit(name, by_stages):
    pairs = zip(by_stages[f"recomputed {name}"], by_stages[name], strict=True)
    for recomputed, kept in pairs:
        assert all(torch.equal(value, kept.weights[key]) for key, value in recomputed.weights.items())


@pytest.mark.parametrize("name", [name for name, trial in CLOSE.items() if trial.evaluates])
def test_only_the_last_stage_measures_what_one_process_does(name, by_stages):
    trial = TRIALS[name]
    found = [one.evaluated for one in by_stages[name]]
    assert not torch.stack(found[: -trial.copies]).any()
    torch.testing.assert_close(sum(found), alone(trial).evaluated, rtol=1e-4, atol=1e-4)
