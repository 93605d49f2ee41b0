"""Rotary positions as torch's compiler sees them."""

import pytest
import torch

from tests.support.flat import flatten, make_rows
from trainer.config.modernbert import ModernBertConfig
from trainer.model.headed import BertForMaskedLM
from trainer.model.modernbert import find_rotation

SHAPE = ModernBertConfig(
    vocab_size=504, hidden_size=96, num_hidden_layers=6, num_attention_heads=2, intermediate_size=144
)


@pytest.mark.thorough
def test_a_compiler_is_given_the_rotations_of_global_and_of_local_layers_once():
    """It would find cosines anew for each value of each layer: docs/devices.md has the time."""
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    batch = flatten(make_rows([5, 9], longest=9, slots=3, vocabulary=500))
    torch.compile(BertForMaskedLM(SHAPE), backend=keep, dynamic=False)(batch)
    torch._dynamo.reset()
    (graph,) = graphs
    called = [str(node.target) for node in graph.graph.nodes if node.op in ("call_function", "call_method")]
    assert sum("rotation" in name for name in called) == 2
    assert not {"cos", "sin"}.intersection(called)


def test_the_rotation_is_the_same_operation_to_a_compiler():
    torch.library.opcheck(find_rotation, (torch.arange(7, dtype=torch.int32), 48, 10_000.0))
