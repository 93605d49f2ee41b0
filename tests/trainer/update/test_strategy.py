"""The strategy of a run: the configured one, or the device's."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertdata.errors import SettingsError
from tests.support.flat import flatten
from tests.support.small_models import make_batch
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.order import draw_numbers
from trainer.devices.cpu import Cpu
from trainer.model.headed import BertForPreTraining
from trainer.run.placing import check_strategy
from trainer.run.strategies import find_strategy
from trainer.tasks.pretraining import Pretraining
from trainer.update.strategy import Strategy, UpdateNumber, draw_part_seeds, seed_micro_batch
from trainer.update.worker import ModelShare, Worker
from trainer.workers.collective import Collective, Stopping

SHAPE = ModelConfig(vocab_size=100, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)


class WithOwnUpdates(Cpu):
    """A processor that claims to make whole updates."""

    strategy = "whole_updates"


def worker(kind: type[Cpu], **settings: object) -> Worker:
    config = Config.of(**settings)
    device = kind(config)
    model = BertForPreTraining(SHAPE)
    return Worker(
        config=config,
        device=device,
        collective=Collective(device),
        model_share=ModelShare(copy=0, copies=1),
        task=Pretraining(),
        model=model,
    )


@pytest.mark.parametrize("strategy", ["auto", "replicated"])
def test_a_processor_holds_the_whole_model(strategy):
    assert isinstance(find_strategy(worker(Cpu, strategy=strategy)), Strategy)


class Checks(Stopping):
    """Notes before which micro-batches the run may stop, and whether an exchange follows."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[bool] = []

    def check(self, *, exchanges: bool) -> None:
        self.exchanges.append(exchanges)


@pytest.mark.parametrize(("once", "wanted"), [(True, [False, False, True]), (False, [True, True, True])])
def test_a_stop_counts_the_exchanges_of_an_update(once, wanted):
    """After the last micro-batch, or after each with allreduce_post_accumulation = false."""
    strategy = find_strategy(worker(Cpu, allreduce_post_accumulation=once))
    strategy.worker.collective.stopping = checks = Checks()
    strategy.update([[flatten(make_batch(seed)) for seed in range(3)]], 0.1, UpdateNumber(0, 0, 0))
    assert checks.exchanges == wanted


def test_the_optimiser_step_gets_the_gradients_of_all_weights(monkeypatch):
    strategy = find_strategy(worker(Cpu))
    found: list[Tensor] = []
    monkeypatch.setattr(strategy.optimiser_step, "take", lambda given, *_: found.extend(given))
    zero_grad = strategy.optimiser_step.optimiser.zero_grad
    monkeypatch.setattr(strategy.optimiser_step.optimiser, "zero_grad", lambda: None)
    strategy.update([[flatten(make_batch())]], 0.1, UpdateNumber(0, 0, 0))
    wanted = [weight.grad for weight in strategy.worker.model.parameters()]
    assert [gradient.data_ptr() for gradient in found] == [gradient.data_ptr() for gradient in wanted]
    assert all(gradient.abs().sum() > 0 for gradient in found)
    zero_grad()


class TwoWorkers(Collective):
    """The first of two workers. The other has no gradients."""

    size = 2

    def average(self, tensors: Iterable[Tensor], dtype: torch.dtype | None = None) -> None:
        for tensor in tensors:
            tensor.div_(2)

    def start_average(self, flat: Tensor, name: str, dtype: torch.dtype | None = None) -> Callable[[], None]:
        flat.div_(2)
        return lambda: None


def test_two_workers_average_their_gradients(monkeypatch):
    found = []
    for kind in (Collective, TwoWorkers):
        torch.manual_seed(0)
        strategy = find_strategy(replace(worker(Cpu, optimiser="adamw"), collective=kind(Cpu(Config.of()))))
        monkeypatch.setattr(
            strategy.optimiser_step, "take", lambda given, *_: found.append([one.clone() for one in given])
        )
        strategy.update([[flatten(make_batch())]], 0.1, UpdateNumber(0, 0, 0))
    for alone, averaged in zip(*found, strict=True):
        torch.testing.assert_close(averaged, alone / 2)


def test_the_counts_of_the_devices_own_optimiser_are_no_moments():
    """torch's AdamW has a count per weight; a checkpoint has one for all."""
    strategy = find_strategy(worker(Cpu))
    weights = dict(strategy.worker.model.named_parameters())
    strategy.optimiser_step.optimiser = optimiser = torch.optim.AdamW(weights.values())
    for weight in weights.values():
        weight.grad = torch.ones_like(weight)
    optimiser.step()
    optimiser.state[next(iter(weights.values()))]["note"] = 5
    wanted = {f"{kind}/{name}" for kind in ("exp_avg", "exp_avg_sq") for name in weights}
    assert strategy.moments().keys() == wanted


@pytest.mark.parametrize(
    ("ends_updates", "compiles", "compiles_whole", "is_one"),
    [
        (False, False, False, False),
        (False, False, True, False),
        (False, True, False, False),
        (False, True, True, True),
        (True, False, False, True),
    ],
)
def test_a_graph_of_the_whole_model_has_one_seed_for_each_micro_batch(
    monkeypatch, ends_updates, compiles, compiles_whole, is_one
):
    made = worker(Cpu)
    device, bert = made.device, made.model.bert
    device.ends_updates, device.compiles, device.compiles_whole = ends_updates, compiles, compiles_whole
    given: list[int] = []
    monkeypatch.setattr(device, "seed", given.append)
    at = UpdateNumber(phase=1, update=5, seed_offset=5)
    seed_micro_batch(made, at, 2)
    expected = draw_part_seeds(made.config.data.seed, at, 2, 3)  # embeddings, one layer, heads
    if is_one:
        assert bert.seeds is None
    else:
        assert given == []
        for part in range(3):
            bert.seeds(part)
    assert given == (expected[:1] if is_one else expected)


def test_the_last_of_three_stages_has_the_heads():
    stages = [ModelShare(copy=0, copies=1, stage=stage, stages=3) for stage in range(3)]
    assert [stage.is_last_stage for stage in stages] == [False, False, True]


def test_a_seed_of_dropout_has_the_upper_63_bits_of_a_random_number():
    """torch's generators take no more, as numbers without a sign."""
    drawn = draw_numbers(4, 7, "dropout", 1, 30, 2)
    seeds = draw_part_seeds(7, UpdateNumber(phase=1, update=30, seed_offset=130), 2, 4)
    assert seeds == [int(number) // 2 for number in drawn]


def test_a_strategy_that_is_not_the_devices_is_refused():
    with pytest.raises(SettingsError, match="strategy is replicated, but device 'cpu' has a strategy of its"):
        check_strategy("replicated", WithOwnUpdates(Config.of()))
