"""Masked spans learned with their boundaries: the slots of a batch, the loss, and runs in every form."""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import bertdata
from bertdata.examples.span.batch import SpanBatch, SpanExample
from bertdata.records import ShardLayout
from tests.support.training_runs import refuse, tensors, words
from trainer.checkpoints.safetensors_files import read_safetensors
from trainer.config.model import ModelConfig
from trainer.data.batches import make_flat_batch
from trainer.data.budgets import Budgets, ExampleSizes
from trainer.data.examples import CompactExamples, gather_examples
from trainer.data.padded_rows import RowForm
from trainer.tasks.span_boundaries import (
    PLACES,
    BertForSpanBoundaries,
    SpanBoundaries,
    find_span_slots,
)

STEPS = 12
LAYOUT = ShardLayout(objective="span", max_seq_length=32, max_predictions_per_seq=20)
EXTERNAL = [
    SpanExample(
        ids=list(range(10, 22)),
        positions=[1, 4, 5, 7],  # 1 touches the start
        labels=[30, 31, 32, 33],
        left_boundaries=[3, 6],
        right_boundaries=[6, 8],
    ),
    SpanExample(ids=[10, 11, 12], positions=[1], labels=[34], left_boundaries=[], right_boundaries=[]),
    SpanExample(
        ids=list(range(10, 40)),
        positions=list(range(3, 20)),  # two more than are predicted
        labels=list(range(40, 57)),
        left_boundaries=[2],
        right_boundaries=[20],
    ),
]
INTERNAL = [
    SpanExample(
        ids=list(range(10, 22)),
        positions=[1, 4, 5, 7],
        labels=[30, 31, 32, 33],
        left_boundaries=[1, 4, 7],
        right_boundaries=[1, 5, 7],
    ),
]


def batch_of(examples: list[SpanExample], *, flat: bool = True) -> Any:
    """The examples, and one missing, as the loader makes a batch of them."""
    held = CompactExamples([SpanBatch.of(examples, wide=False)], LAYOUT)
    count = len(examples)
    gathered = gather_examples([(held, np.arange(count), np.arange(count))], LAYOUT, np.arange(1, count + 1))
    if flat:
        sizes = ExampleSizes.of(np.array([20.0]), np.array([12.0]))
        return make_flat_batch(gathered, Budgets([96], sizes, LAYOUT, count + 1))
    [batch] = RowForm().batches(gathered, count, lambda made: made)
    return batch


def told(batch: Any, lengths: list[int]) -> list[tuple[int, int, int, int]]:
    """Of each used slot with targets: example, boundaries from the example's start, and place."""
    slots, starts = find_span_slots(batch), batch.starts().tolist()
    found = []
    for row, left, right, place, weight in zip(
        batch.masked().tolist(), *(one.tolist() for one in slots), strict=True
    ):
        if weight:
            [example] = [
                number
                for number, length in enumerate(lengths)
                if starts[number] <= row < starts[number] + length
            ]
            found.append((example, left - starts[example], right - starts[example], place))
    return found


@pytest.mark.parametrize("flat", [True, False])
def test_slots_know_the_boundaries_of_their_spans(flat):
    expected = [(0, 3, 6, 0), (0, 3, 6, 1), (0, 6, 8, 0), *((2, 2, 20, place) for place in range(PLACES))]
    assert told(batch_of(EXTERNAL, flat=flat), [12, 3, 30]) == expected


@pytest.mark.parametrize("flat", [True, False])
def test_boundaries_may_be_the_spans_own_ids(flat):
    expected = [(0, 1, 1, 0), (0, 4, 5, 0), (0, 4, 5, 1), (0, 7, 7, 0)]
    assert told(batch_of(INTERNAL, flat=flat), [12]) == expected


def test_the_loss_is_that_of_the_paper():
    """Beside products written out, slot by slot."""
    torch.manual_seed(3)
    shape = ModelConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSpanBoundaries(shape)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape) * 0.3)
    batch = batch_of(EXTERNAL)
    outcome = SpanBoundaries().outcome(model, batch)
    rows, head = model.bert.encode(batch).normed, model.boundary
    embeddings = model.bert.embeddings.word_embeddings.weight[:60]
    starts, losses, masked = batch.starts().tolist(), [], []
    for number, example in enumerate(EXTERNAL):
        labels = dict(zip(example.positions, example.labels, strict=True))
        for left, right in zip(example.left_boundaries, example.right_boundaries, strict=True):
            for place, position in enumerate(range(left + 1, right)[:PLACES]):
                found = torch.cat(
                    [rows[starts[number] + left], rows[starts[number] + right], head.places.weight[place]]
                )
                for layer in (head.first, head.second):
                    found = layer.LayerNorm(F.gelu(layer.dense.weight @ found + layer.dense.bias))
                logits = embeddings @ found + model.cls.predictions.bias[:60]
                losses.append(F.cross_entropy(logits, torch.tensor(labels[position])))
        for position, label in labels.items():
            logits = model.cls.predictions(rows[starts[number] + position][None], embeddings_of(model))
            masked.append(F.cross_entropy(logits[0, :60], torch.tensor(label)))
    expected = torch.stack(losses).mean() + torch.stack(masked).mean()
    assert outcome.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert outcome.sums[5].item() == len(losses) == 3 + PLACES


def embeddings_of(model: BertForSpanBoundaries) -> torch.Tensor:
    return model.bert.embeddings.word_embeddings.weight


# Runs


@pytest.fixture(scope="module")
def spans(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as masked spans, with masks and without."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("spans")
    given = [*map(str, corpus), f"--vocab={small_vocabulary_file}", "--objective=span", "--workers=1"]
    for name, flags in (("made", ()), ("plain", ("--no-masks",))):
        assert main(["create", *given, f"--output={place / name}", "--max-seq-length=64", *flags]) == 0
    return {name: place / name for name in ("made", "plain")}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


FORMS = {
    "flat": (),
    "rows": ("--rows",),
    "bins": ("--bins=2",),
    "packed": ("--pack-on-load",),
    "drawn": ("--masking=dynamic",),
    "drawn-packed-rows": ("--masking=dynamic", "--pack-on-load", "--rows"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.thorough_after_first
def test_it_trains_is_evaluated_and_resumed_to_the_bit(trainer, spans, tmp_path, form):
    data = spans["plain" if form.startswith("drawn") else "made"]
    run = ("--steps=12", "--base-learning-rate=0.02", "--batch-size=8", *FORMS[form])
    evaluated = () if form.startswith("drawn") else (f"--eval-data={data}",)
    whole = trainer(*words(data, tmp_path / "a", *run, *evaluated))
    assert whole.status == 0, whole.err
    rows = table(tmp_path / "a" / "training.csv")
    for name in ("mlm_loss", "boundary_loss"):
        assert float(rows[-1][name]) < float(rows[0][name]) - 0.02
    if evaluated:
        (found,) = table(tmp_path / "a" / "evaluation.csv")
        assert float(found["loss"]) == pytest.approx(
            float(found["masked_lm_loss"]) + float(found["boundary_loss"]), abs=1e-4
        )
        assert re.search(r'boundary_accuracy 0\.\d+ \(always ".+": 0\.\d+\), boundary_loss', whole.err)
    cut = words(data, tmp_path / "b", *run)
    assert trainer(*cut, "--steps-this-run=5").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", STEPS) == tensors(tmp_path / "a", STEPS)


def test_evaluated_words_are_those_between_boundaries(trainer, spans, tmp_path):
    """Of each span the first ones, as the files hold them: the guess beside them is counted on these."""
    assert trainer(*words(spans["made"], tmp_path / "run", "--steps=1", "--warmup=0")).status == 0
    examples = list(bertdata.open_dataset(spans["made"]))
    counts = Counter(label for example in examples for label in example.labels)
    often = min(counts, key=lambda label: (-counts[label], label))
    targets = [label for example in examples for label in boundary_targets(example)]
    outcome = trainer(
        "evaluate", f"--eval-data={spans['made']}", f"--output-dir={tmp_path / 'run'}", "--device=cpu"
    )
    assert outcome.status == 0, outcome.err
    told = re.search(r"boundary_accuracy [\d.]+ \(always \".+\": ([\d.]+)\), boundary_loss", outcome.err)
    assert told
    assert float(told[1]) == pytest.approx(targets.count(often) / len(targets), abs=1e-5)
    assert len(targets) > 1_000


def boundary_targets(example: SpanExample) -> list[int]:
    """The original ids between the boundaries of each span, of its first places."""
    found = []
    for left, right in zip(example.left_boundaries, example.right_boundaries, strict=True):
        pairs = zip(example.positions, example.labels, strict=True)
        found += [label for place, label in pairs if left < place < right][:PLACES]
    return found


def test_a_run_guesses_words_is_exported_and_started_from(trainer, spans, tmp_path):
    """Those who have no use for the head of boundaries leave it; it is kept in an export."""
    run = tmp_path / "run"
    assert trainer(*words(spans["made"], run, "--steps=1", "--warmup=0")).status == 0
    assert trainer("predict", run, "A [MASK].").status == 0
    outcome = trainer("convert", run, tmp_path / "form")
    assert outcome.status == 0, outcome.err
    names = set(read_safetensors(str(tmp_path / "form" / "model.safetensors")))
    assert {"boundary.places.weight", "boundary.second.LayerNorm.bias", "cls.predictions.bias"} <= names
    more = ("--steps=1", "--warmup=0", f"--start-from-ckpt={tmp_path / 'form'}")
    outcome = trainer(*words(spans["made"], tmp_path / "again", *more))
    assert outcome.status == 0, outcome.err
    weights = [read_safetensors(str(found)) for found in sorted(tmp_path.glob("*/checkpoints/*/model*"))]
    assert len(weights) == 2


def test_it_starts_from_a_pre_trained_encoder(trainer, spans, pretrained, tmp_path):
    run = words(spans["made"], tmp_path / "run", f"--start-from-ckpt={pretrained}", "--steps-this-run=1")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err


def test_a_drawn_number_of_masks_is_refused(trainer, spans, tmp_path):
    run = words(spans["plain"], tmp_path / "run", "--masking=dynamic", "--mask-counts=drawn")
    refuse(trainer(*run), 2, "mask_counts is drawn, expected fixed")
