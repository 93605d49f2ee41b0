"""Profiles: updates made as in a run, times by a clock that counts, and one profile for all workers."""

import itertools

import pytest
import torch

from tests.support.plans import make_request
from tests.support.training_runs import MODEL
from trainer.commands.split import run as split
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.model.headed import BertForMaskedLM, BertForPreTraining
from trainer.splitting.plan import profile
from trainer.splitting.plan.costs import PassTimes
from trainer.splitting.plan.footprint import LiveBytes
from trainer.splitting.plan.profile import (
    LAYERS,
    REPETITIONS,
    Profile,
    TimedUpdates,
    measure_costs,
)
from trainer.splitting.plan.rates import DeviceRate
from trainer.splitting.plan.request import PlanRequest
from trainer.update.optimisers import Lamb
from trainer.update.strategy import UpdateNumber, draw_part_seeds
from trainer.workers.collective import Collective

SMALL = {"vocab_size": 104, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
NAMES = ("embeddings", "layer", "heads")


def request(layers: int = 6, pre_norm: bool = False, **changes: object) -> PlanRequest:
    model = ModelConfig(**SMALL, num_hidden_layers=layers, megatron_residual_connection=pre_norm)
    rate = DeviceRate(flops=5e10, bytes=1e10)
    known = {"sequence_length": 8, "examples": 8, "devices": 2, "memory": 10**9, "bandwidth": 1e9}
    known |= {"optimiser": "lamb-mlperf", "precision": "fp32", "attention": "flat", "rate": rate}
    return make_request(model=model, **{**known, **changes})


class Seeded(Cpu):
    """A processor that notes its calls."""

    def __init__(self, **settings: object) -> None:
        super().__init__(Config.of(optimiser="lamb-mlperf", clipping="per_update", **settings))
        self.calls: list[object] = []

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self.calls.append(seed)

    def after_backward(self) -> None:
        self.calls.append("backward")


def timed_updates(made: PlanRequest, device: Seeded) -> TimedUpdates:
    """Updates that note the end of each among the device's calls."""
    updates = TimedUpdates(made, device, 2, Ticks())
    take = updates._step.take

    def noted(gradients: list[torch.Tensor], rate: float, number: int) -> None:
        take(gradients, rate, number)
        device.calls.append("step")

    updates._step.take = noted
    return updates


class Ticks:
    """A clock that is one second later at each call."""

    def __init__(self) -> None:
        self._next = itertools.count()

    def __call__(self) -> float:
        return float(next(self._next))


@pytest.mark.parametrize("layers", [2, 6])
def test_an_update_seeds_each_part_before_it_steps(layers):
    device = Seeded(seed=5)
    updates = timed_updates(request(layers), device)
    for number in range(2):
        updates.run()
        seeds = draw_part_seeds(5, UpdateNumber(0, number, number), 0, min(layers, LAYERS) + 2)
        assert device.calls == [*seeds, "backward", "step"]
        device.calls.clear()


@pytest.mark.parametrize("head", ["pretraining", "masked_words", "squad"])
@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_each_time_is_that_of_one_part_and_one_value(head, pre_norm, precision):
    made = request(pre_norm=pre_norm, precision=precision, head=head)
    updates = TimedUpdates(made, Seeded(precision=precision), 2, Ticks())
    values = sum(weight.numel() for weight in updates.weights)
    ends = PassTimes(1.0, 1.0)
    wanted = {"embeddings": ends, "layer": PassTimes(1 / LAYERS, 1 / LAYERS), "heads": ends}
    assert updates.run() == Profile(passes=wanted, step=1 / values)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_recomputed_layers_are_seeded_again_and_have_the_same_gradients(pre_norm):
    made, device = request(pre_norm=pre_norm), Seeded(seed=5)
    torch.manual_seed(3)
    plain = TimedUpdates(made, device, 2, Ticks())
    plain.run()
    device.calls.clear()
    torch.manual_seed(3)
    updates = timed_updates(made, device)
    times = updates.run(recomputes=True)
    seeds = draw_part_seeds(5, UpdateNumber(0, 0, 0), 0, LAYERS + 2)
    assert device.calls == [*seeds, *reversed(seeds[1 : LAYERS + 1]), "backward", "step"]
    assert times.passes["layer"] == PassTimes(1 / LAYERS, 1 / LAYERS)
    pairs = zip(updates.weights, plain.weights, strict=True)
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)
    assert all(bool(weight.grad.any()) for weight in updates.weights)


def test_recomputed_layers_keep_only_their_input():
    kept = []

    class Watched(Seeded):
        def seed(self, seed: int) -> None:
            kept.append(live.now)
            super().seed(seed)

    with LiveBytes() as live:
        for recomputes in (False, True):
            updates = TimedUpdates(request(), Watched(), 2, Ticks())
            updates.run()
            kept.clear()
            updates.run(recomputes=recomputes)
            after_first, after_second = kept[2:4]  # as the second and the third layer begin
            handed = 2 * 8 * SMALL["hidden_size"] * 4
            assert (after_second - after_first == handed) == recomputes
            assert after_second - after_first >= handed


def test_weights_are_those_of_a_small_model_with_the_word_embeddings_once():
    made = request()
    updates = TimedUpdates(made, Seeded(), 2, Ticks())
    small = BertForPreTraining(request(LAYERS).model)
    assert sum(weight.numel() for weight in updates.weights) == small.count_weights()


def test_masked_words_alone_have_the_weights_of_their_model():
    updates = TimedUpdates(request(head="masked_words"), Seeded(), 2, Ticks())
    small = BertForMaskedLM(request(LAYERS).model)
    assert sum(weight.numel() for weight in updates.weights) == sum(one.numel() for one in small.parameters())
    updates.run()
    assert all(bool(weight.grad.any()) for weight in updates.weights)


def test_gradients_are_added_up_and_the_steps_change_moments_only(monkeypatch):
    steps = []
    monkeypatch.setattr(Lamb, "fused", staticmethod(counting(Lamb.fused, steps)))
    updates = TimedUpdates(request(), Seeded(), 2, Ticks())
    before = [weight.detach().clone() for weight in updates.weights]
    addresses = [weight.grad.data_ptr() for weight in updates.weights]
    updates.run()
    first = [weight.grad.clone() for weight in updates.weights]
    updates.run()
    assert all(torch.equal(*pair) for pair in zip(before, updates.weights, strict=True))
    assert [weight.grad.data_ptr() for weight in updates.weights] == addresses
    assert all(bool(gradient.abs().sum() > 0) for gradient in first)
    assert not any(torch.equal(weight.grad, old) for weight, old in zip(updates.weights, first, strict=True))
    assert len(steps) >= 2
    assert all(numbers.divisor is not None for numbers in steps)  # gradients are clipped


def counting(function, found):
    def step(tensors, numbers, settings):
        found.append(numbers)
        function(tensors, numbers, settings)

    return step


class Two(Collective):
    """Rank 0 of two workers, of which the other one takes ten times as long."""

    size = 2

    def __init__(self, device: Cpu) -> None:
        super().__init__(device)
        self.waits = 0

    def barrier(self) -> None:
        self.waits += 1

    def gather(self, value):
        slow = [
            {"passes": {name: [10 * x for x in times] for name, times in one["passes"].items()}, "step": 7.0}
            for one in value
        ]
        return [value, slow]


@pytest.fixture
def sizes(monkeypatch):
    """The rows of the micro-batches that are run; forward passes take a second a row, backward ones two."""
    found = []

    def measured(request, device, rows, clock):
        found.append(rows)
        return Profile(dict.fromkeys(NAMES, PassTimes(1.0 * rows, 2.0 * rows, 3.0 * rows)), step=0.5)

    monkeypatch.setattr(profile, "measure_updates", measured)
    return found


def test_sizes_between_the_smallest_and_the_largest_lie_on_a_line(sizes, monkeypatch):
    device = Seeded()
    monkeypatch.setattr(profile, "return_memory", lambda _: sizes.append("return_memory"))
    costs = measure_costs(request(), device, Collective(device))
    assert sizes == ["return_memory", 1, 8]  # before anything is timed, as in a run
    layer = costs(4).layers[3]
    found = (layer.forward, layer.backward, layer.recompute, costs(4).step)
    assert found == pytest.approx((4.0, 8.0, 12.0, 0.5))


def test_large_micro_batches_are_not_run(sizes, monkeypatch):
    monkeypatch.setattr(profile, "MOST_TOKENS", 32)
    device = Seeded()
    assert measure_costs(request(), device, Collective(device))(8).heads.forward == pytest.approx(8.0)
    assert sizes == [1, 4]


def test_the_slowest_worker_counts(sizes):
    device = Seeded()
    workers = Two(device)
    costs = measure_costs(request(), device, workers)(8)
    assert workers.waits == 1
    assert (costs.embeddings.forward, costs.embeddings.backward, costs.step) == (80.0, 160.0, 7.0)


class Given:
    """Updates with given times of a layer's forward pass and, for recomputing ones, of both passes."""

    plain = (1.0, 5.0, 4.0, 3.0, 90.0, 7.0)  # of the first update, which does not count, and of others
    recomputed = (9.0, 11.0, 8.0, 10.0, 200.0)

    def __init__(self, *_: object) -> None:
        self.kinds: list[bool] = []
        self._times = {False: iter(self.plain), True: iter(self.recomputed)}
        made.append(self)

    def run(self, *, recomputes: bool = False) -> Profile:
        self.kinds.append(recomputes)
        time = next(self._times[recomputes])
        return Profile(passes=dict.fromkeys(NAMES, PassTimes(time, 2 * time)), step=time / 2)


made: list[Given] = []


@pytest.mark.parametrize("recompute", ["never", "auto", "always"])
def test_the_least_times_of_some_updates_count(monkeypatch, recompute):
    monkeypatch.setattr(profile, "TimedUpdates", Given)
    found = profile.measure_updates(request(recompute=recompute), Seeded(), 2, Ticks())
    assert REPETITIONS == 5
    may_recompute = recompute != "never"
    both = [False, True] if may_recompute else [False]
    assert made.pop().kinds == [False, *both * REPETITIONS]  # in turn
    more = 8.0 + 16.0 - 3.0 - 6.0 if may_recompute else 0.0
    wanted = dict.fromkeys(NAMES, PassTimes(3.0, 6.0, 0.0)) | {"layer": PassTimes(3.0, 6.0, more)}
    assert found == Profile(wanted, step=1.5)


def test_recomputation_takes_no_negative_time(monkeypatch):
    monkeypatch.setattr(profile, "TimedUpdates", Given)
    monkeypatch.setattr(Given, "recomputed", (1.0,) * 5)
    assert profile.measure_updates(request(), Seeded(), 2, Ticks()).passes["layer"].recompute == 0.0


def test_layers_are_measured_on_the_device_found(capsys):
    split([*MODEL, "--devices=2", "--memory=1", "--batch-size=4", "--profile-layers", "--max-seq-length=16"])
    assert "layers measured on device cpu" in capsys.readouterr().out
