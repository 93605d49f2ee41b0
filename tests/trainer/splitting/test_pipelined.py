"""Stages in processes of their own train and measure as one process with the same micro-batches does."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from tests.support.split_training import Result, Trial, train
from tests.support.trials import run_trials
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.splitting.held import WORD_EMBEDDINGS
from trainer.workers.collective import Collective

pytestmark = pytest.mark.usefixtures("one_thread")

DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
PRE_NORM = {
    "megatron_residual_connection": True,
    "scale_query_key": True,
    "deep_weight_init": True,
    "initializer_range": 0.02,
}
ADAMW = {"optimiser": "adamw"}
BF16 = {"precision": "bf16"}
# The largest scale overflows at once, and is halved until nothing does.
FP16 = {"precision": "fp16", "init_loss_scale": 2.0**24}

# With one micro-batch every sum has the same order as in one process.
EXACT = {
    "lamb": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT),
    "pre-norm bf16": Trial(
        stages=2, micro_batches=1, updates=3, model=DROPOUT | PRE_NORM, settings=BF16 | ADAMW
    ),
    "rows": Trial(stages=2, micro_batches=1, updates=3, model=DROPOUT, settings={"rows": True}),
}
CLOSE = {
    "2 stages": Trial(stages=2, updates=20, model=DROPOUT, evaluates=True),
    "4 stages": Trial(stages=4, updates=20, model=DROPOUT, evaluates=True),
    "2 x 2": Trial(stages=2, copies=2, updates=20, model=DROPOUT, evaluates=True),
    "adamw": Trial(stages=2, updates=20, settings=ADAMW),
    "adamw of 4": Trial(stages=4, updates=20, model=DROPOUT, settings=ADAMW),
    "adamw 2 x 2": Trial(stages=2, copies=2, updates=20, settings=ADAMW),
    "no dropout": Trial(stages=2, updates=20),
    "pre-norm": Trial(stages=2, updates=8, model=DROPOUT | PRE_NORM),
    "lengths": Trial(stages=2, updates=8, fill=0.5),
    "more stages than micro-batches": Trial(stages=4, micro_batches=2, updates=4),
}
HALF = {
    "bf16": Trial(stages=4, updates=20, model=DROPOUT, settings=BF16),
    "bf16 2 x 2": Trial(stages=2, copies=2, updates=20, model=DROPOUT, settings=BF16),
    "bf16 adamw": Trial(stages=2, updates=20, settings=BF16 | ADAMW),
    "bf16 adamw 2 x 2": Trial(stages=2, copies=2, updates=20, settings=BF16 | ADAMW),
}
SKIPPING = {"fp16": Trial(stages=2, micro_batches=2, updates=12, model=DROPOUT, settings=FP16)}
# In few updates; the others' many are thorough.
CLOSE |= {
    "few by 2 stages": replace(CLOSE["2 stages"], updates=3),
    "few by 2 x 2": replace(CLOSE["2 x 2"], updates=3),
    "few by 4 stages": Trial(stages=4, micro_batches=2, updates=2, settings=ADAMW),
    "few lengths": replace(CLOSE["lengths"], updates=2),
    "few compiled": Trial(stages=2, updates=2, model=DROPOUT, evaluates=True, compiled=True),
}
HALF["few bf16 adamw"] = replace(HALF["bf16 adamw"], updates=3)
RECOMPUTED = {
    name: replace(CLOSE[name], recomputes=True)
    for name in ("pre-norm", "lengths", "few lengths", "few compiled")
}
SEVERAL = CLOSE | HALF
TRIALS = {
    **{f"{name}, one micro-batch": trial for name, trial in EXACT.items()},
    **SEVERAL,
    **SKIPPING,
    **{f"recomputed {name}": trial for name, trial in RECOMPUTED.items()},
}


def is_quick(name: str) -> bool:
    return "few " in name or name in SKIPPING or name.endswith(", one micro-batch")


def names(*trials: Mapping[str, Trial]) -> list[object]:
    """The names as parameters; thorough are all but those of few updates."""
    found = [name for some in trials for name in some]
    return [name if is_quick(name) else pytest.param(name, marks=pytest.mark.thorough) for name in found]


@cache
def alone(trial: Trial) -> Result:
    """The result of one process, which has the whole model and all micro-batches."""
    return train(replace(trial, stages=1, copies=1, evaluates=True), Collective(Cpu(Config.of())))


@cache
def in_order(trial: Trial) -> Result:
    """The result of one process that adds gradients up in the order of stages and copies."""
    trial = replace(trial, stages=1, evaluates=False)
    return train(trial, Collective(Cpu(Config.of())), in_order=True)


class Results(dict[str, list[Result]]):
    """The results of each worker, by rank; the quick trials are made together, and so are the others."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self._factory = factory

    def __missing__(self, wanted: str) -> list[Result]:
        workers = TRIALS[wanted].workers
        trials = {
            name: trial
            for name, trial in TRIALS.items()
            if (trial.workers, is_quick(name)) == (workers, is_quick(wanted))
        }
        self.update(run_trials(trials, workers, self._factory.mktemp("stages")))
        return self[wanted]


@pytest.fixture(scope="module")
def by_stages(tmp_path_factory) -> Results:
    return Results(tmp_path_factory)


def difference(found: Tensor, wanted: Tensor) -> float:
    """The norm of the difference over that of the wanted tensor."""
    return float((found - wanted).norm() / wanted.norm())


def matters(name: str) -> bool:
    """False for biases of keys: the loss does not depend on them, their gradient is rounding alone."""
    return not name.endswith("key.bias")


@pytest.mark.parametrize("name", names(SEVERAL))
@pytest.mark.thorough_after_first
def test_stages_start_with_the_weights_of_one_process_to_the_bit(name, by_stages):
    wanted, found = alone(TRIALS[name]).first, by_stages[name]
    assert {key for one in found for key in one.first} == set(wanted)
    assert all(torch.equal(weight, wanted[key]) for one in found for key, weight in one.first.items())


@pytest.mark.parametrize("name", EXACT)
def test_with_one_micro_batch_training_has_the_bits_of_one_process(name, by_stages):
    wanted, found = alone(EXACT[name]), by_stages[f"{name}, one micro-batch"]
    assert set(found[0].gradients) & set(found[1].gradients) == {WORD_EMBEDDINGS}
    assert_same_bits(found, wanted)


@pytest.mark.parametrize("name", names(SEVERAL, SKIPPING))
@pytest.mark.thorough_after_first
def test_training_has_the_bits_of_one_process_that_adds_up_in_the_same_order(name, by_stages):
    """So all differences from the usual order, below, are those of sums of the same gradients."""
    assert_same_bits(by_stages[name], in_order(TRIALS[name]))


def assert_same_bits(found: list[Result], wanted: Result) -> None:
    for one in found:
        assert one.gradients.keys() == one.weights.keys()
        for ours, theirs in ((one.gradients, wanted.gradients), (one.weights, wanted.weights)):
            assert not [key for key, value in ours.items() if not same(value, theirs[key])]
    assert torch.equal(sum(torch.stack(one.values) for one in found), torch.stack(wanted.values))


def same(one: Tensor, other: Tensor) -> bool:
    """True if all bits are the same, those of infinite gradients too."""
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


@pytest.mark.parametrize("name", names(SEVERAL))
def test_first_losses_and_gradients_are_those_of_one_process(name, by_stages):
    """To the bit, but for the word embeddings, whose two uses are added up by stage, not by micro-batch.

    Sums over copies, and products with more padding, have another order.
    """
    trial, wanted = TRIALS[name], alone(TRIALS[name])
    is_exact = trial.copies == 1 and trial.fill == 1.0
    first = sum(one.values[0] for one in by_stages[name])
    torch.testing.assert_close(first, wanted.values[0], rtol=0.0 if is_exact else 1e-6, atol=0.0)
    for one in by_stages[name]:
        for key, gradient in one.gradients.items():
            if is_exact and key != WORD_EMBEDDINGS:
                assert torch.equal(gradient, wanted.gradients[key]), key
            elif matters(key):
                assert difference(gradient, wanted.gradients[key]) < (1e-7 if is_exact else 1e-5), key


@pytest.mark.parametrize("name", names(CLOSE))
def test_after_up_to_20_updates_weights_are_those_of_one_process(name, by_stages):
    wanted, found = alone(TRIALS[name]), by_stages[name]
    assert all(not torch.equal(wanted.weights[key], wanted.first[key]) for key in wanted.weights)
    assert distance(found, wanted) < 1e-7
    far = {
        key: apart
        for one in found
        for key, weight in one.weights.items()
        if matters(key) and (apart := difference(weight, wanted.weights[key])) >= 1e-6
    }
    assert not far


@pytest.mark.parametrize("name", names(HALF))
def test_in_bf16_the_order_of_sums_changes_less_than_the_precision_does(name, by_stages):
    """A difference of 1e-8 flips roundings of activations, each of which is of the precision's size.

    AdamW makes the same step for a gradient of any size, so that also small ones, which nearly cancel each
    other, flip some at once; LAMB on stages without copies flips none in 20 updates.
    """
    trial = HALF[name]
    settings = {key: value for key, value in trial.settings.items() if key != "precision"}
    whole, half = alone(replace(trial, settings=settings)), alone(trial)
    assert distance(by_stages[name], half) < distance([half], whole) / 2
    assert distance([half], whole) < 2e-3


def distance(found: list[Result], wanted: Result) -> float:
    """The norm of the difference of all weights that matter over that of the wanted ones."""
    weights = {key: weight for one in found for key, weight in one.weights.items() if matters(key)}
    flat = [torch.cat([some[key].flatten() for key in weights]) for some in (weights, wanted.weights)]
    return difference(*flat)


def test_in_fp16_all_stages_skip_the_same_updates(by_stages):
    found = by_stages["fp16"]
    ((applied, skipped),) = {(one.applied, one.skipped) for one in found}
    assert applied + skipped == 12
    assert min(applied, skipped) > 0


@pytest.mark.parametrize("name", names(SEVERAL))
def test_both_copies_of_the_word_embeddings_stay_the_same_to_the_bit(name, by_stages):
    held = [one.weights[WORD_EMBEDDINGS] for one in by_stages[name] if WORD_EMBEDDINGS in one.weights]
    assert len(held) == 2 * TRIALS[name].copies
    assert all(torch.equal(weight, held[0]) for weight in held)


@pytest.mark.parametrize("name", names(CLOSE))
def test_only_the_last_stage_reports_the_losses_of_one_process(name, by_stages):
    trial, wanted = TRIALS[name], torch.stack(alone(TRIALS[name]).values)
    reported = [torch.stack(one.values) for one in by_stages[name]]
    assert not torch.stack(reported[: -trial.copies]).any()
    torch.testing.assert_close(sum(reported), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", names(RECOMPUTED))
def test_recomputed_activations_change_no_bit(name, by_stages):
    pairs = zip(by_stages[f"recomputed {name}"], by_stages[name], strict=True)
    for recomputed, kept in pairs:
        assert all(torch.equal(value, kept.weights[key]) for key, value in recomputed.weights.items())


@pytest.mark.parametrize("name", names({name: trial for name, trial in CLOSE.items() if trial.evaluates}))
def test_only_the_last_stage_measures_what_one_process_does(name, by_stages):
    trial = TRIALS[name]
    found = [one.evaluated for one in by_stages[name]]
    assert not torch.stack(found[: -trial.copies]).any()
    torch.testing.assert_close(sum(found), alone(trial).evaluated, rtol=1e-4, atol=1e-4)
