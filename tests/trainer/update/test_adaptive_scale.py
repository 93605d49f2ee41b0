"""The loss scale: its growth, its bounds, its state in a checkpoint."""

import pytest
import torch

from trainer.config.settings import Config
from trainer.devices.device import HOST
from trainer.update import adaptive_scale
from trainer.update.adaptive_scale import AdaptiveScale, make_scale
from trainer.update.step import LossScale

FINE, OVERFLOW = torch.tensor(False), torch.tensor(True)


def test_the_scaled_loss_has_scaled_gradients():
    scale = AdaptiveScale(initial=1024.0, ceiling=4096.0)
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    scale.scale((weight * weight).sum()).backward()
    assert weight.grad.item() == 6 * 1024


def test_the_scale_grows_after_good_updates_up_to_its_ceiling(monkeypatch):
    monkeypatch.setattr(adaptive_scale, "_GROWTH_INTERVAL", 2)
    scale = AdaptiveScale(initial=2.0, floor=1.0, ceiling=8.0)
    seen = []
    for _ in range(8):
        assert not scale.update(FINE)
        seen.append(float(scale.value))
    assert seen == [2, 4, 4, 8, 8, 8, 8, 8]


def test_an_overflow_restarts_the_count_of_good_updates(monkeypatch):
    monkeypatch.setattr(adaptive_scale, "_GROWTH_INTERVAL", 2)
    scale = AdaptiveScale(initial=4.0, floor=1.0, ceiling=8.0)
    seen = []
    for overflow in (FINE, OVERFLOW, FINE, FINE):
        scale.update(overflow)
        seen.append(scale.state_dict())
    assert seen == [
        {"value": 4.0, "good": 1},
        {"value": 2.0, "good": 0},
        {"value": 2.0, "good": 1},
        {"value": 4.0, "good": 0},
    ]


def test_an_overflow_at_the_floor_means_that_the_training_has_diverged():
    scale = AdaptiveScale(initial=4.0, floor=1.0, ceiling=8.0)
    assert not scale.update(OVERFLOW)
    assert not scale.update(OVERFLOW)
    assert scale.value == 1
    assert scale.update(OVERFLOW)
    assert scale.value == 1


def test_the_scale_grows_after_2000_good_updates():
    scale = AdaptiveScale(initial=2.0, floor=1.0, ceiling=8.0)
    scale.load_state_dict({"value": 2.0, "good": 1998})
    scale.update(FINE)
    assert scale.state_dict() == {"value": 2.0, "good": 1999}
    scale.update(FINE)
    assert scale.state_dict() == {"value": 4.0, "good": 0}


def test_fp16_starts_with_a_large_scale_and_goes_on_where_a_checkpoint_left_it():
    config = Config.of(precision="fp16")
    scale = make_scale(config, HOST)
    assert scale.value == 65536
    assert not scale.update(OVERFLOW)
    again = make_scale(config, HOST)
    again.load_state_dict(scale.state_dict())
    assert again.state_dict() == {"value": 32768.0, "good": 0}
    again.load_state_dict({"value": 1e30, "good": 5})
    assert again.value == 2**24


@pytest.mark.parametrize("scale", [LossScale(), make_scale(Config.of(precision="bf16"), HOST)])
def test_other_precisions_do_not_scale_the_loss(scale):
    loss = torch.tensor(3.0)
    assert scale.scale(loss) is loss
    assert scale.state_dict() == {"value": 1.0, "good": 0}
    scale.load_state_dict({"value": 65536.0, "good": 5})
    assert scale.state_dict() == {"value": 1.0, "good": 5}
