"""Gradients of micro-batches that are clipped one by one and added."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.update.micro_batch_sums import MicroBatchSums


def add_up(
    gradients: list[tuple[float, float]], *, scale: float = 1.0, device_clip=None, **keys: object
) -> tuple[list[float], int]:
    """Add the gradients of a weight. Return their sum, and how often the workers took an average."""
    weight, averages = torch.nn.Parameter(torch.zeros(2)), []
    config = Config.of(clipping="per_micro_batch", max_grad_norm=1.0, **keys)
    worker = SimpleNamespace(config=config, collective=SimpleNamespace(average=averages.append))
    step = SimpleNamespace(
        scale=SimpleNamespace(is_one=scale == 1, value=scale),
        device_clip=device_clip,
        optimiser=SimpleNamespace(zero_grad=lambda: None),
    )
    sums = MicroBatchSums(worker, [weight], step)
    for gradient in gradients:
        weight.grad = torch.tensor(gradient)
        sums.add(len(gradients))
    sums.finish()
    return weight.grad.tolist(), len(averages)


def test_each_gradient_is_clipped_by_its_own_norm_before_the_sum():
    # MLPerf's limit is for the undivided loss: 1 / 2 micro-batches. Of 3-4-5 it leaves a tenth.
    assert add_up([(3.0, 4.0), (0.3, 0.0)])[0] == pytest.approx([0.6, 0.4], abs=1e-5)


def test_the_limit_is_multiplied_by_the_loss_scale():
    assert add_up([(3.0, 4.0), (0.3, 0.0)], scale=8.0)[0] == pytest.approx([2.7, 3.2], abs=1e-5)


def test_the_workers_take_an_average_of_each_micro_batch_or_of_none():
    assert add_up([(3.0, 4.0), (0.3, 0.0)], allreduce_post_accumulation=True)[1] == 0
    assert add_up([(3.0, 4.0), (0.3, 0.0)], allreduce_post_accumulation=False)[1] == 2


def test_a_device_clips_by_a_function_of_its_own():
    seen = []

    def halve(gradients: list[Tensor], limit: float) -> None:
        seen.append(limit)
        for gradient in gradients:
            gradient.mul_(0.5)

    assert add_up([(3.0, 4.0)], device_clip=halve)[0] == [1.5, 2.0]
    assert seen == [1.0]
