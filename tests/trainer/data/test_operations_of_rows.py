"""Tokens and operations of padded and of packed rows: those of the same examples in flat batches."""

import numpy as np
import torch

from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.row_batches import RowBatch
from trainer.model.bert import PASSES
from trainer.model.headed import count_forward_operations, count_operations

SHAPE = ModelConfig(
    vocab_size=50, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16
)


def drawn(*, rows: bool, batch_size: int = 7):
    """The first micro-batch of generated examples of several lengths."""
    data = generate_data(
        ShardLayout(max_seq_length=32, max_predictions_per_seq=5), vocabulary_size=50, fill=0.6
    )
    form = make_form(Rows(data), batch_size=batch_size, padded=rows)
    loader = Loader(Rows(data), form=form, batch_size=batch_size)
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
    assert sorted(batch.lengths()) == sorted(flat[0].lengths()[flat[0].lengths() > 0]) == sorted(real)
    counted, counted_flat = count_operations(rows, SHAPE), count_operations(flat, SHAPE)
    assert counted_flat.operations == counted.operations
    assert counted_flat.tokens == counted.tokens == int(real.sum())
    assert counted.slots == batch.input_ids.numel() > counted_flat.slots == flat[0].input_ids.numel()
    assert count_operations([*rows, *rows], SHAPE).operations == 2 * count_operations(rows, SHAPE).operations


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
    assert sorted(batch.lengths()) == [0, 2, 3, 4]
    counted = count_operations([batch], SHAPE)
    assert counted.tokens == 9
    assert counted.operations == PASSES * count_forward_operations(np.array([2, 3, 4]), 1, SHAPE)
