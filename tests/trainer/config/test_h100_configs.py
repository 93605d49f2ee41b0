"""The configurations for GPUs with 80 GB: their micro-batches fit, and their descriptions tell the truth."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support.flat import flatten, make_rows
from trainer.config.flags import make_config
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.devices.cuda_losses import cross_entropy
from trainer.model.headed import BertForPreTraining
from trainer.tasks.pretraining import compute_pretraining_loss

MEMORY = 80e9
VOCABULARY = 30528  # padded
LENGTH, SLOTS = 128, 20  # phase 2 has as many masked slots for a token


class KeptAttention(torch.autograd.Function):
    """Something that keeps what flash attention keeps: query, key, value and the result."""

    @staticmethod
    def forward(context: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        result = value * 2
        context.save_for_backward(query, key, value, result)
        return result

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        raise AssertionError("only the forward pass is measured")


def kept_bytes(layers: int, examples: int) -> int:
    """Bytes that forward pass and loss keep for backward, in bf16 at the width of BERT-Large."""
    shape = ModelConfig(
        vocab_size=VOCABULARY,
        hidden_size=1024,
        num_hidden_layers=layers,
        num_attention_heads=16,
        intermediate_size=4096,
    )
    with torch.device("meta"):
        model = BertForPreTraining(shape)
    model.to_empty(device="cpu")  # whatever the weights, as much is kept
    model.bert.attention = lambda query, key, value, *_, **__: KeptAttention.apply(query, key, value)
    kept = dict[int, Tensor]()

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    batch = flatten(make_rows([LENGTH] * examples, longest=LENGTH, slots=SLOTS, vocabulary=VOCABULARY))
    with (
        torch.autocast("cpu", torch.bfloat16),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
    ):
        compute_pretraining_loss(model(batch), batch, cross_entropy)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.fixture(scope="module")
def bytes_of_a_token() -> float:
    """Bytes kept for a token by 24 layers, with those for its share of the logits' gradient."""
    one, two = ((kept_bytes(layers, 2) - kept_bytes(layers, 1)) / LENGTH for layers in (1, 2))
    return one + 23 * (two - one) + VOCABULARY * SLOTS / LENGTH * 2


@pytest.mark.parametrize(("phase", "fill"), [(1, 0.9), (2, 0.5)])
def test_micro_batches_fit_80_gb_and_the_description_says_how(bytes_of_a_token, phase, fill):
    config = make_config([f"--config=bert_large_phase{phase}_h100"])
    shape = read_model_config(config.model_settings)
    with torch.device("meta"):
        weights = BertForPreTraining(shape).count_weights()
    fixed = weights * (4 + 4 + 4 + 4 + 2)  # weights, gradients, two moments, weights in bf16
    assert config.update.batch_size is not None
    assert config.data.max_seq_length is not None
    tokens = config.update.batch_size * config.data.max_seq_length
    full = fixed + tokens * bytes_of_a_token
    usual = fixed + fill * tokens * bytes_of_a_token
    assert full < MEMORY
    found = re.search(
        r"Expected fill ([\d.]+): (\d+) tokens in a micro-batch, (\d+) GB by estimate, (\d+) GB at fill 1",
        str(config.reports.description),
    )
    assert found
    assert float(found[1]) == fill
    assert int(found[2]) == pytest.approx(fill * tokens, rel=0.01)
    assert int(found[3]) == pytest.approx(usual / 1e9, rel=0.02)
    assert int(found[4]) == pytest.approx(full / 1e9, rel=0.02)
    assert (config.run.device, config.update.precision, config.run.compile) == ("cuda", "bf16", True)
