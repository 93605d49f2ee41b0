"""Copies of the weights in 16 bits, made once an update."""

import pytest
import torch
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.training_runs import losses, tensors, words
from trainer.devices.cpu import Cpu

RUN = ("--precision=bf16", "--accumulation=3", "--steps=3", "--checkpoint-every=3", "--no-logs")


@pytest.mark.usefixtures("one_thread")
def test_weights_cast_once_an_update_learn_the_same_to_the_bit(trainer, training_set, tmp_path, monkeypatch):
    assert trainer(*words(training_set, tmp_path / "each", *RUN)).status == 0
    monkeypatch.setattr(Cpu, "casts_once", True)
    assert trainer(*words(training_set, tmp_path / "once", *RUN)).status == 0
    assert tensors(tmp_path / "once", 3) == tensors(tmp_path / "each", 3)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_each_linear_weight_is_cast_once_in_an_update(
    trainer, training_set, tmp_path, monkeypatch, precision
):
    monkeypatch.setattr(Cpu, "casts_once", True)
    cast = list[torch.Size]()

    class Casts(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **kwargs or {})
            is_cast = function.overloadpacket.__name__ == "_to_copy" and args[0].dtype == torch.float32
            if is_cast and isinstance(args[0], torch.nn.Parameter) and result.dtype == torch.bfloat16:
                cast.append(args[0].shape)
            return result

    run = (*RUN, "--steps=1", "--warmup=0", "--num-hidden-layers=1", f"--precision={precision}")
    with Casts():
        assert trainer(*words(training_set, tmp_path / "run", *run)).status == 0
    of_a_layer = 2 * (4 + 2)  # weights and biases
    of_the_heads = 2 * 3  # pooler, transform, next sentence
    of_the_words = 3  # embeddings are looked up in fp32: their copy for the head is each micro-batch's
    assert len(cast) == (of_a_layer + of_the_heads + of_the_words if precision == "bf16" else 0)


@pytest.mark.usefixtures("one_thread")
def test_a_compiled_model_has_a_graph_for_each_budget_all_the_same(
    trainer, training_set, tmp_path, monkeypatch
):
    compile_it = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **_: compile_it(self, backend="eager"))
    monkeypatch.setattr(Cpu, "casts_once", True)
    torch._dynamo.reset()
    counters.clear()
    run = ("--precision=bf16", "--accumulation=2", "--num-hidden-layers=1", "--steps=4")
    assert trainer(*words(training_set, tmp_path / "run", *run, "--compile")).status == 0
    assert counters["stats"]["unique_graphs"] == 2
    assert not counters["graph_break"]
    assert losses(tmp_path / "run")
