"""The calls for sequences of many lengths on GPUs: with stand-ins, and on PyTorch's meta device."""

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.flat import flatten, make_rows
from trainer.config.model import ModelConfig
from trainer.devices.cuda_attention import KERNELS, efficient_attention, flash_attention
from trainer.model.headed import BertForPreTraining
from trainer.model.padded_attention import padded_attention
from trainer.tasks.pretraining import compute_pretraining_loss

SHAPE = ModelConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
ENDS = torch.tensor([0, 3, 3, 10, 12], dtype=torch.int32)
LONGEST, HEADS = 8, 2


def make_inputs(size: int) -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    return torch.randn(12, 3, HEADS, size).unbind(1)


def stand_in_flash(query, key, value, ends, key_ends, longest, key_longest, dropout, causal, debug, *, scale):
    assert ends is key_ends
    assert ends.dtype == torch.int32
    assert (longest, key_longest, dropout, causal, debug) == (LONGEST, LONGEST, 0.0, False, False)
    assert query.dim() == 3
    assert query.shape[2] % 8 == 0
    return padded_attention(query, key, value, ends, longest, dropout, scale), None, None, None, None


def stand_in_efficient(
    query, key, value, bias, ends, key_ends, longest, key_longest, dropout, mask, keeps, *, scale
):
    assert (bias, mask, keeps) == (None, 0, True)
    assert query.shape[0] == key.shape[0] == value.shape[0] == 1
    parts = (query[0], key[0], value[0])
    output, *rest = stand_in_flash(
        *parts, ends, key_ends, longest, key_longest, dropout, False, False, scale=scale
    )
    return output[None], *rest


@pytest.mark.parametrize("size", [16, 12, 3])
@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("attention", [flash_attention, efficient_attention])
def test_heads_of_any_size_are_attended_whole(monkeypatch, attention, scale, size):
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", stand_in_flash)
    monkeypatch.setattr(torch.ops.aten, "_efficient_attention_forward", stand_in_efficient)
    inputs = make_inputs(size)
    found = attention(*inputs, ENDS, LONGEST, 0.0, scale)
    torch.testing.assert_close(found, padded_attention(*inputs, ENDS, LONGEST, 0.0, scale))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_efficient_operation_takes_these_arguments(dtype):
    """On the meta device, which checks arguments and shapes and computes nothing."""
    inputs = [part.to("meta", dtype) for part in make_inputs(12)]
    found = efficient_attention(*inputs, ENDS.to("meta"), LONGEST, 0.1)
    assert (found.shape, found.dtype) == ((12, HEADS, 12), dtype)


@pytest.mark.parametrize("attention", [flash_attention, efficient_attention])
def test_gradients_have_the_shapes_of_their_inputs_for_the_compiler_too(attention):
    """PyTorch's own shapes for the efficient gradient lack an argument, so that no compiled run began."""
    inputs = [part.to("meta", torch.bfloat16).requires_grad_() for part in make_inputs(12)]
    attention(*inputs, ENDS.to("meta"), LONGEST, 0.1).sum().backward()
    assert all(part.grad.shape == part.shape for part in inputs)


class Operations(TorchDispatchMode):
    """Counts operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function.overloadpacket.__name__] += 1
        return function(*args, **kwargs or {})


def test_an_update_of_the_model_is_one_flash_call_a_layer_and_waits_for_nothing():
    """Forward, loss and backward on the meta device, in bf16: no value is ever read."""
    model = BertForPreTraining(SHAPE).to("meta", torch.bfloat16)
    model.bert.attention = flash_attention
    rows = make_rows([32, 20, 7, 32, 11], longest=32, slots=6, vocabulary=100)
    examples = flatten(rows, budget=128, slots=24).map(lambda tensor: tensor.to("meta"))
    with Operations() as seen:
        compute_pretraining_loss(model(examples), examples).loss.backward()
    assert seen.counts["_flash_attention_forward"] == SHAPE.num_hidden_layers
    assert seen.counts["_flash_attention_backward"] == SHAPE.num_hidden_layers
    assert seen.counts["addmm"] == 4 * SHAPE.num_hidden_layers + 3 + 1  # one for query, key and value
    assert not {"nonzero", "_local_scalar_dense", "searchsorted"} & set(seen.counts)
    assert all(weight.grad is not None for weight in model.parameters())


def test_every_kernel_of_the_flag_has_its_attention():
    assert list(KERNELS) == ["flash", "efficient", "cudnn", "math"]


@pytest.mark.parametrize("attention", [flash_attention, efficient_attention])
def test_the_call_is_one_operation_of_a_compiled_graph(attention):
    torch._dynamo.reset()
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    inputs = [part.to("meta", torch.bfloat16) for part in make_inputs(16)]
    found = torch.compile(attention, backend=keep, fullgraph=True, dynamic=False)(
        *inputs, ENDS.to("meta"), LONGEST, 0.1, None
    )
    assert found.shape == inputs[0].shape
    (graph,) = graphs
    called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert sum("attention_forward" in name for name in called) == 1
    assert not any(
        "nonzero" in name or "item" in name.split(".")[-1] for name in called if "getitem" not in name
    )
