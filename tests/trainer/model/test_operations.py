"""Tokens and operations of batches: real ones only."""

from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.support.flat import flatten, make_rows
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.devices import counting
from trainer.model.bert import PASSES
from trainer.model.headed import BertForMaskedLM, BertForPreTraining, count_operations
from trainer.tasks.pretraining import MaskedWords, Pretraining

SHAPE = ModelConfig(
    vocab_size=50, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
)


def test_padding_is_not_counted():
    rows = make_rows([5, 12, 9], longest=12, slots=3, vocabulary=50)
    bare, padded = flatten(rows), flatten(rows, budget=40, slots=7)
    assert padded.tokens < padded.input_ids.numel()
    assert padded.lengths().tolist() == [5, 12, 9]
    assert count_operations([padded], SHAPE) == count_operations([bare], SHAPE)._replace(slots=40)
    assert count_operations([padded], SHAPE).tokens == 26
    assert (
        count_operations([padded, padded], SHAPE).operations == 2 * count_operations([bare], SHAPE).operations
    )


def test_operations_are_those_that_pytorch_counts():
    """In the model itself; attention, which versions of PyTorch count differently, is two products a head."""
    lengths = [5, 12, 9]
    rows = make_rows(lengths, longest=12, slots=3, vocabulary=50)
    batch = flatten(rows)
    model = BertForPreTraining(replace(SHAPE, attention_probs_dropout_prob=0.0)).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        Pretraining().outcome(model, batch)
    products = counter.get_flop_counts()["Global"][torch.ops.aten.addmm]
    attention = sum(4 * length**2 for length in lengths) * SHAPE.hidden_size * SHAPE.num_hidden_layers
    assert count_operations([batch], replace(SHAPE, vocab_size=56)).operations == PASSES * (
        products + attention
    )


MODERN = ModernBertConfig(
    vocab_size=504, hidden_size=96, num_hidden_layers=6, num_attention_heads=2, intermediate_size=144
)


def counted_share(lengths: list[int], shape: ModernBertConfig) -> float:
    """PyTorch's count of the forward pass over our count of the tokens' operations."""
    rows = make_rows(lengths, longest=max(lengths), slots=3, vocabulary=500)
    batch = flatten(rows)
    model = BertForMaskedLM(shape).eval()
    model.bert.attention = counting.host_attention
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        MaskedWords().outcome(model, batch)
    of_pairs = len(lengths) * 2 * shape.hidden_size * (shape.hidden_size + 2)  # a head that it has not
    return counter.get_total_flops() / (count_operations([batch], shape).operations / PASSES - of_pairs)


def test_a_modernberts_operations_are_those_that_pytorch_counts():
    """All of them where sequences are shorter than the reach."""
    assert counted_share([5, 60, 33], MODERN) == 1


def test_blocks_of_a_window_add_little_to_the_operations_of_the_tokens():
    """They compute scores for three times the reach, where each token sees twice of it."""
    sizes = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 1152, "num_hidden_layers": 3}
    assert 1 < counted_share([300, 130, 90], replace(MODERN, **sizes)) < 1.03
