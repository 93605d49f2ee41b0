"""Losses and gradients of fine-tuning are those of transformers' models with the same weights."""

import numpy as np
import pytest
import torch
import transformers

from bertdata.errors import SettingsError
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
from trainer.data.batches import make_flat_batch
from trainer.data.budgets import Budgets, ExampleSizes
from trainer.data.examples import CompactExamples, gather_examples
from trainer.data.padded_rows import pad_rows
from trainer.tasks.classification.task import Classification
from trainer.tasks.squad.answers import select_best_logits
from trainer.tasks.squad.task import Squad, split_logits_by_sequence

S, V = 16, 56  # a vocabulary that needs no padding
SHAPE = ModelConfig(
    vocab_size=V, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
    hidden_dropout_prob=0, attention_probs_dropout_prob=0, max_position_embeddings=S,
)  # fmt: skip
LENGTHS = (16, 16, 16)


def examples(kind, lengths, **own):
    draw = np.random.default_rng(3)
    return [
        kind(
            ids=draw.integers(5, V, length).tolist(),
            first_length=5,
            **{name: values[number] for name, values in own.items()},
        )
        for number, length in enumerate(lengths)
    ]


def batches(kind, objective, found):
    """The examples flat, with one missing, and in rows."""
    from bertdata.examples import columns

    layout = ShardLayout(max_seq_length=S, objective=objective)
    held = columns.convert_to_arrays(kind.of(found, wide=False))
    rows = np.arange(len(found))
    lengths = np.array([len(one.ids) for one in found])
    budgets = Budgets([], ExampleSizes.of(lengths, np.zeros(len(found))), layout, len(found) + 1)
    gathered = gather_examples([(CompactExamples([held], layout), rows, rows)], layout, rows + 1)
    flat = make_flat_batch(gathered, budgets)
    return flat, pad_rows(gathered, len(found) + 1)


def theirs(kind, model, **more):
    config = transformers.BertConfig(**{**SHAPE.as_json(), **more})
    peer = kind(config)
    weights = {name: tensor for name, tensor in model.state_dict().items() if name in peer.state_dict()}
    missing, unexpected = peer.load_state_dict(weights, strict=False)
    assert not missing
    assert not unexpected
    return peer


def inputs(batch, count):
    return {
        "input_ids": batch.input_ids[:count].long(),
        "token_type_ids": batch.token_type_ids[:count].long(),
        "attention_mask": batch.attention_mask[:count].long(),
    }


def same_gradients(model, peer):
    ours, other = dict(model.named_parameters()), dict(peer.named_parameters())
    compared = 0
    for name, weight in other.items():
        if ours[name].grad is not None and weight.grad is not None:
            torch.testing.assert_close(ours[name].grad[: len(weight)], weight.grad, rtol=1e-4, atol=1e-6)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize("form", [0, 1])
def test_answers(form):
    found = examples(
        SquadExample, LENGTHS, answer_start=[6, 0, 9], answer_end=[7, 0, 14], impossible=[0, 0, 0]
    )
    both = batches(SquadBatch, "squad", found)
    task = Squad(Config.of(task="squad"))
    model = task.new_model(SHAPE)
    outcome = task.outcome(model, both[form])
    outcome.loss.backward()
    peer = theirs(transformers.BertForQuestionAnswering, model)
    result = peer(
        **inputs(both[1], 3),
        start_positions=torch.tensor([6, 0, 9]),
        end_positions=torch.tensor([7, 0, 14]),
    )
    result.loss.backward()
    assert outcome.loss.item() == pytest.approx(result.loss.item(), rel=1e-5)
    assert outcome.outputs is None
    assert outcome.sums[[1, 3]].tolist() == [3, 3]
    same_gradients(model, peer)
    logits = split_logits_by_sequence(model(both[form]), both[form])[:3]
    torch.testing.assert_close(logits[:, :, 0], result.start_logits, rtol=1e-4, atol=1e-5)


def test_answers_over_padding_have_the_loss_and_the_gradients_of_transformers():
    """Places are chosen among all of a row there, while the embedding of padding learns nothing."""
    found = examples(
        SquadExample, (16, 9, 12), answer_start=[6, 0, 9], answer_end=[7, 0, 10], impossible=[0, 0, 0]
    )
    _, rows = batches(SquadBatch, "squad", found)
    keys = {"answers_over_padding": True, "padding_learns": False, "rows": True}
    task = Squad(Config.of(task="squad", **keys))
    model = task.new_model(SHAPE)
    outcome = task.outcome(model, rows)
    outcome.loss.backward()
    peer = theirs(transformers.BertForQuestionAnswering, model)
    answers = {"start_positions": torch.tensor([6, 0, 9]), "end_positions": torch.tensor([7, 0, 10])}
    result = peer(**inputs(rows, 3), **answers)
    result.loss.backward()
    assert outcome.loss.item() == pytest.approx(result.loss.item(), rel=1e-5)
    same_gradients(model, peer)
    model.eval()
    logits = task.outcome(model, rows).outputs  # evaluation chooses among the sequence's own tokens
    assert torch.isinf(logits[1, 9:]).all()


def test_the_embedding_of_padding_learns_as_in_tensorflow():
    found = examples(SquadExample, (9,), answer_start=[0], answer_end=[0], impossible=[0])
    _, rows = batches(SquadBatch, "squad", found)
    task = Squad(Config.of(task="squad", answers_over_padding=True, rows=True))
    model = task.new_model(SHAPE)
    task.outcome(model, rows).loss.backward()
    assert model.bert.embeddings.word_embeddings.weight.grad[0].norm() > 0


def test_answers_over_padding_need_rows():
    with pytest.raises(SettingsError, match="answers_over_padding: flat batches .* give --rows too"):
        Squad(Config.of(task="squad", answers_over_padding=True))


@pytest.mark.parametrize("form", [0, 1])
def test_labels(form):
    found = examples(LabelledExample, (16, 9, 12), label=[2, 0, 1])
    both = batches(LabelledBatch, "classification", found)
    task = Classification(Config.of(task="classification", labels=["a", "b", "c"]))
    model = task.new_model(SHAPE)
    outcome = task.outcome(model, both[form])
    outcome.loss.backward()
    peer = theirs(transformers.BertForSequenceClassification, model, num_labels=3)
    result = peer(**inputs(both[1], 3), labels=torch.tensor([2, 0, 1]))
    result.loss.backward()
    assert outcome.loss.item() == pytest.approx(result.loss.item(), rel=1e-5)
    same_gradients(model, peer)
    model.eval()
    torch.testing.assert_close(
        task.outcome(model, both[form]).outputs[:3], result.logits, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("form", [0, 1])
def test_scores(form):
    scores = [1.25, -3.0, 0.1]
    halves = [split_score(score) for score in scores]
    found = examples(
        ScoredExample,
        (16, 9, 12),
        score_high=[high for high, _ in halves],
        score_low=[low for _, low in halves],
    )
    both = batches(ScoredBatch, "regression", found)
    task = Classification(Config.of(task="sts-b"))
    model = task.new_model(SHAPE)
    outcome = task.outcome(model, both[form])
    peer = theirs(transformers.BertForSequenceClassification, model, num_labels=1)
    result = peer(**inputs(both[1], 3), labels=torch.tensor(scores))
    assert outcome.loss.item() == pytest.approx(result.loss.item(), rel=1e-5)


def test_the_logits_that_are_kept_are_the_best_and_that_of_position_0():
    draw = np.random.default_rng(5)
    logits = draw.normal(size=(4, 30, 2)).astype(np.float32)
    logits[2, 20:] = -np.inf
    found = select_best_logits(logits, 6)
    assert found.shape == (4, 4, 7)
    for row in range(4):
        for side in range(2):
            best = np.argsort(-logits[row, :, side], kind="stable")[:6].tolist()
            places, kept = found[row, 2 * side], found[row, 2 * side + 1]
            assert places.tolist() == [*best, 0]
            assert np.array_equal(kept, logits[row, [*best, 0], side])
    logits[2, 3:] = -np.inf
    assert np.isfinite(select_best_logits(logits, 6)).all(), "JSON has no infinity"
