"""The loss of an update: over its micro-batches, its masked words, or its sequences."""

from types import SimpleNamespace

import pytest
import torch

from tests.support.flat import flatten
from tests.support.small_models import make_batch
from trainer.config.settings import Config
from trainer.data.row_batches import RowBatch
from trainer.update.loss_shares import compute_loss_divisors, count_sequences


class TwoWorkers:
    """The first of two workers; the other has 14 masked words in its update."""

    size = 2

    def average(self, tensors):
        for tensor in tensors:
            tensor.copy_((tensor + 14) / 2)


def worker(over, workers):
    device, task = SimpleNamespace(torch_device=torch.device("cpu")), SimpleNamespace(is_fine_tuned=False)
    config = Config.of(loss_over=over)
    return SimpleNamespace(config=config, collective=workers, device=device, task=task)


def words(count):
    weights = torch.zeros(8)
    weights[:count] = 1
    return SimpleNamespace(masked_lm_weights=weights)


def test_each_masked_word_of_an_update_counts_alike_on_all_workers():
    one = SimpleNamespace(size=1, average=lambda tensors: None)
    batches = [words(count) for count in (6, 2, 0)]
    shares = [1 / float(each) for each in compute_loss_divisors(worker("update", one), batches, 1)]
    assert shares == pytest.approx([6 / 8, 2 / 8, 0], abs=1e-5)
    # of 8 + 14 words; the mean over two workers halves each share
    shares = [
        1 / float(each) / 2 for each in compute_loss_divisors(worker("update", TwoWorkers()), batches, 2)
    ]
    assert shares == pytest.approx([6 / 22, 2 / 22, 0], abs=1e-5)


def test_usually_each_micro_batch_counts_alike():
    assert compute_loss_divisors(worker("micro_batch", None), [words(6), words(2)], 1) == [2, 2]


def test_micro_batches_are_added_up_as_in_transformers_5():
    """Its classifiers divide no loss by the number of micro-batches."""
    assert compute_loss_divisors(worker("sum", None), [words(6), words(2)], 1) == [1, 1]


def test_padding_of_a_packed_row_counts_as_a_sequence_as_in_modernbert():
    batch = flatten(make_batch())
    there = int((batch.next_sentence_labels >= 0).sum())
    full = batch.changed(longest=batch.tokens)
    assert count_sequences(full, rows=1) == there
    assert count_sequences(batch.changed(longest=batch.tokens + 1), rows=1) == there + 1
    assert count_sequences(batch, rows=len(batch)) == there  # rows of one example each


def test_each_padded_row_of_examples_packed_before_counts_one_sequence_more():
    zeros = torch.zeros(3, 4, dtype=torch.int32)
    rows = RowBatch(
        input_ids=zeros,
        token_type_ids=zeros,
        attention_mask=torch.tensor([[1, 1, 2, 2], [1, 1, 1, 0], [1, 2, 0, 0]], dtype=torch.int32),
        masked_lm_positions=zeros[:, :1],
        masked_lm_ids=zeros[:, :1],
        masked_lm_weights=torch.zeros(3, 1),
        next_sentence_labels=torch.tensor([[0, 1], [1, -1], [0, 0]], dtype=torch.int32),
        next_sentence_positions=torch.tensor([[0, 2], [0, 0], [0, 1]], dtype=torch.int32),
    )
    assert count_sequences(rows, rows=3) == 5 + 2
    one_each = rows.changed(
        attention_mask=rows.attention_mask.clamp(max=1),
        next_sentence_labels=rows.next_sentence_labels[:, 0],
        next_sentence_positions=None,
    )
    assert count_sequences(one_each, rows=3) == 3
