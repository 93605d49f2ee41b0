"""The request for a plan that a configuration makes."""

from typing import Any

import pytest

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.splitting.plan.rates import DeviceRate
from trainer.splitting.plan.request import PlanRequest, count_configured_examples

MODEL = ModelConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=4)
HARDWARE: dict[str, Any] = {"memory": 10**9, "bandwidth": 1e9, "rate": DeviceRate(flops=1e12, bytes=1e11)}


def requested(devices: int = 8, **keys: Any) -> PlanRequest:
    config = Config.of(**keys)
    examples = count_configured_examples(config, devices)
    own = {"examples": examples, "devices": devices, "sequence_length": 128}
    return PlanRequest(config=config, model=MODEL, head=config.task, **own, **HARDWARE)


@pytest.mark.parametrize(
    ("keys", "examples", "batch_size"),
    [
        ({}, 8 * 32, None),
        ({"batch_size": 4, "accumulation": 3}, 8 * 4 * 3, 4),
        ({"batch_size": 4, "accumulation": 3, "replicas": 2}, 2 * 4 * 3, 4),
        ({"global_batch_size": 6, "batch_size": 3}, 6, 3),  # fewer than a micro-batch for each device
    ],
)
def test_an_update_has_the_configured_examples(keys, examples, batch_size):
    request = requested(**keys)
    assert (request.examples, request.update.batch_size) == (examples, batch_size)


def test_masks_are_the_configured_ones_and_fine_tuning_has_none_of_its_own():
    assert requested(max_predictions_per_seq=7).masked_slots == 7
    assert requested().masked_slots == requested(task="squad", max_predictions_per_seq=7).masked_slots == 20


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"stages": 3}, "stages is 3, expected a divisor of the number of devices (8)"),
        ({"copies": 16}, "copies is 16, expected a divisor of the number of devices (8)"),
        ({"stages": 2, "copies": 2}, "stages x copies is 2 x 2, expected 8 (devices)"),
        ({"stages": 8}, "stages is 8, expected at most num_hidden_layers (4)"),
    ],
)
def test_stages_and_copies_that_cannot_be_are_refused(keys, words):
    with pytest.raises(SettingsError) as caught:
        requested(**keys)
    assert str(caught.value).startswith(words)
