"""Tokens and operations of batches: real ones only, and the same in either form."""

from dataclasses import replace

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from bertdata.records import ShardLayout
from tests.support.flat import flatten, make_rows
from trainer.config.model import ModelConfig
from trainer.data.batches import RowBatch
from trainer.data.forms import make_form
from trainer.data.generated import generated_data
from trainer.data.loader import Loader
from trainer.model.bert import PASSES, BertForPreTraining, count, forward_operations, lengths_of
from trainer.model.pretraining import Pretraining

SHAPE = ModelConfig(
    vocab_size=50, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
)


def drawn(*, rows: bool, batch_size: int = 7):
    """The first micro-batch of generated examples of several lengths."""
    data = generated_data(
        ShardLayout(max_seq_length=32, max_predictions_per_seq=5), vocabulary_size=50, fill=0.6
    )
    form = make_form(data, batch_size=batch_size, rows=rows)
    loader = Loader(data, form=form, batch_size=batch_size)
    try:
        return next(loader).batches
    finally:
        loader.close()


def test_padding_is_not_counted_and_both_forms_have_the_same_counts():
    flat, rows = drawn(rows=False), drawn(rows=True)
    (batch,) = rows
    real = batch.attention_mask.sum(1)
    assert batch.input_ids.numel() > int(real.sum()) > 0  # there is padding
    assert flat[0].tokens < flat[0].input_ids.numel()
    assert sorted(lengths_of(batch)) == sorted(lengths_of(flat[0])[lengths_of(flat[0]) > 0]) == sorted(real)
    assert count(flat, SHAPE) == count(rows, SHAPE)
    assert count(flat, SHAPE).tokens == int(real.sum())
    assert count([*rows, *rows], SHAPE).operations == 2 * count(rows, SHAPE).operations


def test_the_examples_of_a_packed_row_are_counted_one_by_one():
    mask = torch.tensor([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]], dtype=torch.int32)
    zeros = torch.zeros(2, 1)
    batch = RowBatch(
        input_ids=mask,
        token_type_ids=mask,
        attention_mask=mask,
        masked_lm_positions=zeros,
        masked_lm_ids=zeros,
        masked_lm_weights=torch.tensor([[1.0], [0.0]]),
        next_sentence_labels=zeros,
    )
    assert sorted(lengths_of(batch)) == [0, 2, 3, 4]
    counted = count([batch], SHAPE)
    assert counted.tokens == 9
    assert counted.operations == PASSES * forward_operations(np.array([2, 3, 4]), 1, SHAPE)


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
