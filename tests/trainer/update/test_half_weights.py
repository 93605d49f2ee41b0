"""Copies of the weights in 16 bits, made once an update."""

from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.compiling import capturing, count_graphs
from tests.support.training_runs import losses, tensors, words
from tests.trainer.update.test_gradient_buckets import SIZE, Recorder
from tests.trainer.update.test_strategy import worker
from trainer.devices.cpu import Cpu
from trainer.run.strategies import find_strategy
from trainer.update.averaging import GradientBuckets
from trainer.update.half_weights import HalfWeights

RUN = ("--precision=bf16", "--accumulation=3", "--steps=3", "--checkpoint-every=3", "--no-logs")


@pytest.mark.usefixtures("one_thread")
def test_weights_cast_once_an_update_learn_the_same_to_the_bit(trainer, training_set, tmp_path, monkeypatch):
    assert trainer(*words(training_set, tmp_path / "each", *RUN)).status == 0
    monkeypatch.setattr(Cpu, "casts_once", True)
    assert trainer(*words(training_set, tmp_path / "once", *RUN)).status == 0
    assert tensors(tmp_path / "once", 3) == tensors(tmp_path / "each", 3)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("precision", "copied"), [("fp32", 0), ("bf16", 3)])
def test_weights_are_copied_once_an_update(trainer, training_set, tmp_path, monkeypatch, precision, copied):
    monkeypatch.setattr(Cpu, "casts_once", True)
    casts, copies = list[torch.Size](), list[int]()

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **kwargs or {})
            name = function.overloadpacket.__name__
            if name == "_to_copy" and isinstance(args[0], torch.nn.Parameter):
                casts.append(result.shape)
            if name == "_foreach_copy_":
                copies.append(len(args[0]))
            return result

    with Seen():
        run = words(training_set, tmp_path / "run", *RUN, "--num-hidden-layers=1", f"--precision={precision}")
        assert trainer(*run).status == 0
    of_a_layer = 2 * (4 + 2)  # weights and biases
    of_the_heads = 2 * 3  # pooler, transform, next sentence
    assert copies == [of_a_layer + of_the_heads] * copied
    # Embeddings are looked up in fp32: the head's copy of them is each micro-batch's.
    assert casts == [torch.Size((2000, 32))] * 3 * copied


def test_buckets_are_averaged_as_soon_as_the_copies_have_their_gradients():
    """With two workers of equal gradients the means are those of one, added up in fp32."""
    one, two = (Pair() for _ in range(2))
    alone, halves = HalfWeights(one, torch.bfloat16), HalfWeights(two, torch.bfloat16)
    weights = list(two.parameters())
    workers = Recorder()
    buckets = GradientBuckets(weights, workers, 1, None, halves.leaves(weights))
    draw = torch.Generator().manual_seed(1)
    for _ in range(2):  # two updates
        one.zero_grad()
        buckets.reset()
        for number in range(2):
            rows = torch.randn(4, SIZE, generator=draw).bfloat16()
            alone(rows).float().square().mean().backward()
            with buckets.averaging() if number else nullcontext():
                halves(rows).float().square().mean().backward()
                workers.events.append("end of backward")
        for weight, other in zip(weights, one.parameters(), strict=True):
            assert weight.grad is not None
            assert weight.grad.dtype == torch.float32
            torch.testing.assert_close(weight.grad, other.grad, rtol=0, atol=0)
            weight.data.sub_(weight.grad)
            other.data.sub_(other.grad)
        alone.refresh()
        halves.refresh()
    started = [event for event in workers.events if not event.startswith("finish")]
    assert started == ["end of backward", "start bucket.1", "start bucket.0", "end of backward"] * 2


@pytest.mark.parametrize(
    ("recomputes", "precision", "copied"),
    [(False, "bf16", True), (True, "bf16", False), (False, "fp32", False)],
)
def test_layers_that_are_computed_again_and_fp32_have_no_copies(monkeypatch, recomputes, precision, copied):
    monkeypatch.setattr(Cpu, "casts_once", True)
    made = worker(Cpu, precision=precision)
    made.model.bert.recomputes = recomputes
    assert isinstance(getattr(find_strategy(made), "_half_weights", None), HalfWeights) is copied


class Pair(torch.nn.Module):
    """Two linear layers, drawn alike each time; a weight is a MiB."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(SIZE, SIZE, bias=False) for _ in range(2)))

    def forward(self, rows):
        return self.layers(rows)


@pytest.mark.thorough
@pytest.mark.usefixtures("one_thread")
def test_a_compiled_model_has_the_same_graphs_for_each_budget(trainer, training_set, tmp_path, monkeypatch):
    monkeypatch.setattr(Cpu, "casts_once", True)
    run = ("--precision=bf16", "--accumulation=2", "--num-hidden-layers=2", "--steps=4")
    with capturing():
        assert trainer(*words(training_set, tmp_path / "run", *run, "--compile")).status == 0
        assert count_graphs() == 2 * 3  # embeddings, layers and heads
    assert losses(tmp_path / "run")
