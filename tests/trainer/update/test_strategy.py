"""The strategy of a run: the configured one, or the device's."""

import pytest

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.cpu import Cpu
from trainer.model.headed import BertForPreTraining
from trainer.run.placing import check_strategy
from trainer.run.strategies import find_strategy
from trainer.tasks.pretraining import Pretraining
from trainer.update.strategy import Strategy
from trainer.update.worker import ModelShare, Worker
from trainer.workers.collective import Collective

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


def test_a_strategy_that_is_not_the_devices_is_refused():
    with pytest.raises(SettingsError, match="strategy is replicated, but device 'cpu' has a strategy of its"):
        check_strategy("replicated", WithOwnUpdates(Config.of()))
