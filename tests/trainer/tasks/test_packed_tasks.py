"""Losses, gradients and logits of fine-tuning on packed rows are those of one sequence a row."""

import numpy as np
import pytest
import torch

from bertdata.examples import columns
from bertdata.examples.classification.batch import (
    LabelledBatch,
    LabelledExample,
    ScoredBatch,
    ScoredExample,
    split_score,
)
from bertdata.examples.squad.batch import SquadBatch, SquadExample
from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.examples import CompactExamples, gather_examples
from trainer.data.load_packing import ROW_LAYOUT
from trainer.data.padded_rows import pack_rows, pad_rows
from trainer.tasks.classification.task import Classification
from trainer.tasks.squad.task import Squad, split_logits_by_sequence

S, V, K = 16, 56, 3
SHAPE = ModelConfig(
    vocab_size=V, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
    hidden_dropout_prob=0, attention_probs_dropout_prob=0, max_position_embeddings=S,
)  # fmt: skip
LENGTHS = (6, 5, 5, 16, 9, 7)
ROWS = (3, 4, 6)
"""The examples of each row end here; the last two rows hold fewer than K."""


def both_forms(kind, batch_type, objective, **own):
    """The examples one a row, with a missing one, and in packed rows, with a missing one."""
    draw = np.random.default_rng(3)
    found = [
        kind(ids=draw.integers(5, V, length).tolist(), first_length=3,
             **{name: values[number] for name, values in own.items()})
        for number, length in enumerate(LENGTHS)
    ]  # fmt: skip
    held = columns.convert_to_arrays(batch_type.of(found, wide=False))
    rows, layout = np.arange(len(found)), ShardLayout(max_seq_length=S, objective=objective)
    packed = ShardLayout(max_seq_length=S, objective=objective, packing=ROW_LAYOUT, sequences_per_row=K)
    single = gather_examples([(CompactExamples([held], layout), rows, rows)], layout, rows + 1)
    together = gather_examples([(CompactExamples([held], packed), rows, rows)], packed, np.array(ROWS))
    return pad_rows(single, len(found) + 1), pack_rows(together, len(ROWS) + 1, 0)


CASES = {
    "squad": (
        Squad(Config.of(task="squad")),
        (SquadExample, SquadBatch, "squad"),
        {"answer_start": [4, 0, 3, 9, 5, 3], "answer_end": [5, 0, 3, 14, 7, 6], "impossible": [0] * 6},
    ),
    "labels": (
        Classification(Config.of(task="classification", labels=["a", "b", "c"])),
        (LabelledExample, LabelledBatch, "classification"),
        {"label": [2, 0, 1, 1, 0, 2]},
    ),
    "scores": (
        Classification(Config.of(task="sts-b")),
        (ScoredExample, ScoredBatch, "regression"),
        dict(zip(("score_high", "score_low"),
                 zip(*(split_score(score) for score in (1.25, -3.0, 0.1, 5.0, 0.0, 2.5)), strict=True),
                 strict=True)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_losses_metrics_and_gradients_are_those_of_single_sequences(name):
    task, kinds, own = CASES[name]
    torch.manual_seed(0)
    model = task.new_model(SHAPE)
    found = []
    for batch in both_forms(*kinds, **own):
        model.zero_grad()
        outcome = task.outcome(model, batch)
        outcome.loss.backward()
        gradients = {
            key: weight.grad.clone() for key, weight in model.named_parameters() if weight.grad is not None
        }
        found.append((outcome, gradients))
    (single, expected), (packed, gradients) = found
    assert packed.loss.item() == pytest.approx(single.loss.item(), rel=1e-5)
    assert packed.sums[1::2].tolist() == [6] * len(task.metrics), "missing examples do not count"
    torch.testing.assert_close(packed.sums, single.sums, rtol=1e-5, atol=1e-6)
    assert gradients.keys() == expected.keys()
    for key, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[key], rtol=1e-5, atol=1e-6, msg=key)


def test_the_logits_of_a_question_are_cut_out_of_its_row():
    task, kinds, own = CASES["squad"]
    model = task.new_model(SHAPE).eval()
    single, packed = both_forms(*kinds, **own)
    alone = split_logits_by_sequence(model(single), single)
    together = split_logits_by_sequence(model(packed), packed)
    assert together.shape == (4 * K, S, 2)
    there = [0, 1, 2, 3, 6, 7]  # row 1 holds one sequence, row 2 two
    torch.testing.assert_close(together[there], alone[:6], rtol=1e-4, atol=1e-5)
    assert together.isfinite().sum().item() == 2 * (sum(LENGTHS) + 4 * K - 6)


def test_labels_and_positions_lie_at_the_place_of_their_sequence():
    _, kinds, own = CASES["squad"]
    _, packed = both_forms(*kinds, **own)
    assert packed.targets["answer_starts"].tolist() == [[4, 0, 3], [9, 0, 0], [5, 3, 0], [0, 0, 0]]
    assert packed.next_sentence_labels.tolist() == [[0, 0, 0], [0, -1, -1], [0, 0, -1], [-1, -1, -1]]
    assert packed.slice_rows(1, 3).targets["answer_ends"].tolist() == [[14, 0, 0], [7, 6, 0]]
