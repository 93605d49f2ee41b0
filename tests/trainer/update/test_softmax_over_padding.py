"""Rows that pad the vocabulary take part in the softmax where the original lets them."""

import math
from types import SimpleNamespace

import pytest
import torch

from tests.support.flat import flatten
from tests.support.small_models import make_batch, ours
from trainer.config.settings import Config
from trainer.tasks.pretraining import Pretraining
from trainer.update.strategy import set_softmax_padding


def words_loss(model, batch):
    sums = Pretraining().outcome(model, batch).sums
    return float(sums[0] / sums[1])


def test_padded_rows_are_in_the_sum_of_the_softmax():
    model, batch = ours().eval(), flatten(make_batch())
    size, padded = model.config.vocab_size, model.config.padded_vocab_size
    assert size < padded, "a vocabulary that needs padding"
    usual = words_loss(model, batch)
    logits = model(batch).masked_lm
    assert torch.isinf(logits[:, size:]).all()
    set_softmax_padding(SimpleNamespace(model=model, config=Config.of(softmax_over_padding=True)))
    wide = model(batch).masked_lm
    # The rows and their biases are zeros at first: each adds exp(0) to the sum.
    assert (wide[:, size:] == 0).all()
    sums = logits[:, :size].logsumexp(1)
    more = torch.log(sums.exp() + padded - size) - sums
    weights = batch.masked_lm_weights
    wanted = usual + float(((more * weights).sum() / weights.sum()).detach())
    assert not math.isclose(usual, wanted, rel_tol=1e-4)
    assert words_loss(model, batch) == pytest.approx(wanted, rel=1e-6)
