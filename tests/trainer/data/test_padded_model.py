"""The model on padded rows: the same losses and gradients as of transformers, and of flat batches."""

import pytest
import torch
from torch.nn import functional as F

from bertdata.errors import SettingsError
from tests.support.flat import flatten
from tests.support.small_models import (
    B,
    P,
    S,
    assert_equal_transformers,
    assert_norms_in_32_bits,
    make_batch,
    ours,
)
from trainer.data.row_batches import RowBatch
from trainer.devices.cpu import cpu_attention
from trainer.model.layers import ACTIVATIONS
from trainer.model.padded_attention import padded_attention
from trainer.tasks.pretraining import compute_pretraining_loss


def make_rows(padded: bool = True) -> RowBatch:
    return RowBatch(**vars(make_batch(padded=padded)))


@pytest.mark.parametrize("hidden_act", ACTIVATIONS)
@pytest.mark.parametrize("padded", [True, False])
def test_logits_losses_and_gradients_equal_transformers(hidden_act, padded):
    examples = make_batch(padded=padded)
    slots = (examples.masked_lm_positions.long() + S * torch.arange(B)[:, None]).flatten()
    assert_equal_transformers(ours(hidden_act=hidden_act), make_rows(padded), examples, slots)


@pytest.mark.parametrize("attention", [padded_attention, cpu_attention])
@pytest.mark.parametrize("options", [{}, {"megatron_residual_connection": True}, {"scale_query_key": True}])
def test_flat_sequences_change_no_loss_and_no_gradient(options, attention):
    """Relative differences in fp32, of each parameter's gradient as a whole."""
    rows, results = make_rows(), []
    flat = flatten(make_batch(), budget=B * S + 7, slots=B * P - 3)
    assert len(flat.input_ids) > flat.tokens
    for batch in (rows, flat):
        model = ours(**options)
        model.bert.attention = attention
        logits = model(batch)
        assert len(logits.masked_lm) == (B * P if batch is rows else B * P - 3)
        outcome = compute_pretraining_loss(logits, batch)
        outcome.loss.backward()
        results.append((outcome, [parameter.grad for parameter in model.parameters()]))
    (wanted, of_rows), (found, of_flat) = results
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    whole = torch.cat([gradient.flatten() for gradient in of_rows]).norm()
    for one, other in zip(of_flat, of_rows, strict=True):
        # A key's bias changes no softmax: its gradient is rounding, as small as that of the others.
        assert (one - other).norm() <= 1e-5 * max(other.norm(), 1e-2 * whole)


def test_rows_that_fill_up_a_batch_change_nothing():
    batch = make_rows()
    full = batch.map(lambda values: F.pad(values, (0, 0) * (values.dim() - 1) + (0, 3)))
    full.next_sentence_labels[B:] = -1
    model = ours()
    found = compute_pretraining_loss(model(full), full)
    wanted = compute_pretraining_loss(model(batch), batch)
    for name in found._fields:
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=0, atol=1e-5)


def test_a_batch_without_masks_has_loss_zero():
    batch = make_rows()
    batch.masked_lm_weights.zero_()
    losses = compute_pretraining_loss(ours()(batch), batch)
    losses.loss.backward()
    assert losses.sums[:4].tolist() == [0, 0, 0, 0]
    assert losses.loss.item() == pytest.approx(float(losses.sums[4] / B))


@pytest.mark.parametrize("first", [False, True])
def test_autocast_keeps_the_residual_in_16_bits_and_norms_in_32(first):
    assert_norms_in_32_bits(ours(megatron_residual_connection=first), make_rows())


def test_a_row_longer_than_the_positions_is_refused():
    with pytest.raises(SettingsError, match="sequences of 24 ids, the model has max_position_embeddings 20"):
        ours(max_position_embeddings=20)(make_rows())
