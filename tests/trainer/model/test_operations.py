"""Tokens and operations of batches: real ones only."""

from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.support.flat import flatten, make_rows
from trainer.config.model import ModelConfig
from trainer.model.bert import PASSES, BertForPreTraining, count
from trainer.model.pretraining import Pretraining

SHAPE = ModelConfig(
    vocab_size=50, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
)


def test_padding_is_not_counted():
    rows = make_rows([5, 12, 9], longest=12, slots=3, vocabulary=50)
    bare, padded = flatten(rows), flatten(rows, budget=40, slots=7)
    assert padded.tokens < padded.input_ids.numel()
    assert padded.lengths().tolist() == [5, 12, 9]
    assert count([padded], SHAPE) == count([bare], SHAPE)
    assert count([padded], SHAPE).tokens == 26
    assert count([padded, padded], SHAPE).operations == 2 * count([bare], SHAPE).operations


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
    assert count([batch], replace(SHAPE, vocab_size=56)).operations == PASSES * (products + attention)
