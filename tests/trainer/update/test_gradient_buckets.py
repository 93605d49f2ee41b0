"""Gradients averaged in buckets: their bits, and the order of the calls."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from trainer.update.averaging import GradientBuckets
from trainer.workers.worker_group import split_into_buckets

SIZE = 512  # a layer's weight is one MiB


class Recorder:
    """A collective of two workers whose gradients are equal; it notes when averages start and end."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def start_average(self, flat: Tensor, name: str, dtype: torch.dtype | None = None) -> Callable[[], None]:
        self.events.append(f"start {name}")
        sent = (flat / 2).to(dtype or flat.dtype)

        def finish() -> None:
            self.events.append(f"finish {name}")
            flat.copy_(sent + sent)

        return finish


def layers(count: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(SIZE, SIZE, bias=False) for _ in range(count)))


def weights_of(model: nn.Module) -> list[Tensor]:
    return list(model.parameters())


def test_each_bucket_is_averaged_while_the_layers_below_are_still_differentiated():
    model, workers = layers(), Recorder()
    buckets = GradientBuckets(weights_of(model), workers, 1, None)
    for number, layer in enumerate(model):
        layer.register_full_backward_hook(lambda *_, number=number: workers.events.append(f"layer {number}"))
    buckets.reset()
    inputs = torch.ones(2, SIZE, requires_grad=True)
    with buckets.averaging():
        model(inputs).sum().backward()
        workers.events.append("end of backward")
    order = [event for event in workers.events if not event.startswith("finish")]
    assert order.index("start bucket.2") < order.index("layer 1")
    assert order.index("start bucket.1") < order.index("layer 0")
    assert order.index("start bucket.0") < order.index("end of backward")
    assert workers.events[-3:] == ["finish bucket.2", "finish bucket.1", "finish bucket.0"]


def test_only_the_last_backward_pass_of_an_update_is_averaged():
    model, workers = layers(), Recorder()
    buckets = GradientBuckets(weights_of(model), workers, 1, None)
    buckets.reset()
    model(torch.ones(2, SIZE)).sum().backward()
    assert workers.events == []
    with buckets.averaging():
        model(torch.ones(2, SIZE)).sum().backward()
    assert sum(event.startswith("start") for event in workers.events) == 3


@pytest.mark.parametrize("megabytes", [1, 2, 100])
def test_gradients_of_several_passes_are_those_without_buckets(megabytes):
    plain, model = layers(), layers()
    buckets = GradientBuckets(weights_of(model), Recorder(), megabytes, None)
    draw = torch.Generator().manual_seed(1)
    passes = [torch.randn(4, SIZE, generator=draw) for _ in range(3)]
    for _ in range(2):  # two updates
        plain.zero_grad()
        buckets.reset()
        for number, inputs in enumerate(passes):
            plain(inputs).square().mean().backward()
            if number < 2:
                model(inputs).square().mean().backward()
        with buckets.averaging():
            model(passes[2]).square().mean().backward()
        for found, wanted in zip(weights_of(model), weights_of(plain), strict=True):
            assert torch.equal(found.grad, wanted.grad)


def test_the_buckets_are_the_gradients_memory():
    model = layers(2)
    buckets = GradientBuckets(weights_of(model), Recorder(), 100, None)
    buckets.reset()
    with buckets.averaging():
        model(torch.ones(2, SIZE)).sum().backward()
    first, second = (weight.grad for weight in model.parameters())
    assert second.data_ptr() - first.data_ptr() == first.numel() * 4
    before = first.data_ptr()
    buckets.reset()
    assert [float(weight.grad.abs().sum()) for weight in model.parameters()] == [0, 0]
    assert next(model.parameters()).grad.data_ptr() == before


def test_sums_in_16_bits_are_rounded_once():
    model, workers = layers(1), Recorder()
    buckets = GradientBuckets(weights_of(model), workers, 1, torch.bfloat16)
    buckets.reset()
    with buckets.averaging():
        model(torch.full((2, SIZE), 1.001)).sum().backward()
    (weight,) = model.parameters()
    assert torch.equal(weight.grad, weight.grad.bfloat16().float())


def test_a_weight_that_the_loss_does_not_reach_holds_nothing_up():
    model, workers = layers(), Recorder()
    buckets = GradientBuckets(weights_of(model), workers, 1, None)
    buckets.reset()
    with buckets.averaging():
        model[0](torch.ones(2, SIZE)).sum().backward()
    assert workers.events[:3] == ["start bucket.2", "start bucket.1", "start bucket.0"]
    assert float(model[2].weight.grad.abs().sum()) == 0


def test_an_error_in_the_backward_pass_leaves_the_next_update_whole():
    model, workers = layers(1), Recorder()
    buckets = GradientBuckets(weights_of(model), workers, 1, None)
    buckets.reset()
    with pytest.raises(ValueError, match="stop"), buckets.averaging():
        raise ValueError("stop")
    model(torch.ones(2, SIZE)).sum().backward()
    assert workers.events == []


def test_tensors_of_one_type_share_a_bucket_up_to_its_size():
    small, large = torch.zeros(2**17), torch.zeros(2**19)  # half a MiB, two MiB
    half = torch.zeros(2**17, dtype=torch.bfloat16)
    found = split_into_buckets([small, small, small, large, small, half, half], 1)
    assert [[tensor.numel() for tensor in bucket] for bucket in found] == [
        [2**17, 2**17],
        [2**17],
        [2**19],
        [2**17],
        [2**17, 2**17],
    ]
