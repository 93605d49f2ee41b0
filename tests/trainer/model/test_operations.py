"""Tokens and operations of batches: real ones only, and the same in either form."""

import numpy as np
import pytest
import torch

from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.data.batches import RowBatch
from trainer.data.forms import make_form
from trainer.data.generated import generated_data
from trainer.data.loader import Loader
from trainer.model.operations import PASSES, count, forward_operations, lengths_of

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


@pytest.mark.parametrize(("lengths", "masks"), [([32], 5), ([3, 9, 20], 4)])
def test_operations_are_those_that_pytorch_counts(lengths, masks):
    """Each sequence by itself, without padding, as PyTorch's counter sees its matrix products."""
    flop_counter = pytest.importorskip("torch.utils.flop_counter")
    width, inner = SHAPE.hidden_size, SHAPE.intermediate_size
    with flop_counter.FlopCounterMode(display=False) as counter:
        for length in lengths:
            hidden = torch.zeros(length, width)
            for _ in range(SHAPE.num_hidden_layers):
                for _ in range(4):  # query, key, value, output
                    hidden @ torch.zeros(width, width)
                (hidden @ hidden.T) @ hidden
                (hidden @ torch.zeros(width, inner)) @ torch.zeros(inner, width)
            hidden[:1] @ torch.zeros(width, width) @ torch.zeros(width, 2)
        heads = torch.zeros(masks, width) @ torch.zeros(width, width)
        heads @ torch.zeros(width, SHAPE.vocab_size)
    assert forward_operations(np.array(lengths), masks, SHAPE) == counter.get_total_flops()
