"""An objective with groups of columns of its own, learned by a task that the objective names."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bertdata.dataset.reader import open_dataset
from bertdata.examples.objectives import find_objective
from tests.support.block_objective import NAME as BLOCKS
from tests.support.launching import launch
from tests.support.masked_span_objective import NAME as MASKED_SPANS
from tests.support.span_objective import NAME
from tests.support.span_task import GENERATED, SpanTask
from tests.support.training_runs import MODEL, WORKER, refuse, tensors, words
from trainer.checkpoints.safetensors_files import read_safetensors
from trainer.tasks.task import Task

STEPS = 12


@pytest.fixture(scope="module")
def spans(corpus, small_vocabulary_file, tmp_path_factory) -> Path:
    """The sample corpus as sentences with spans."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("spans") / "set"
    words = ["create", *map(str, corpus), f"--output={place}", f"--vocab={small_vocabulary_file}"]
    assert main([*words, f"--objective={NAME}", "--max-seq-length=48", "--workers=1"]) == 0
    return place


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def small(spans: Path, place: Path, *more: str) -> list[str]:
    return words(spans, place, f"--steps={STEPS}", "--base-learning-rate=0.02", "--batch-size=16", *more)


@pytest.mark.parametrize("form", [(), ("--rows",), ("--bins=2",), ("--pack-on-load",)])
@pytest.mark.thorough_after_first
def test_it_trains_is_evaluated_and_resumed_to_the_bit(trainer, spans, tmp_path, form):
    whole = trainer(*small(spans, tmp_path / "a", f"--eval-data={spans}", *form))
    assert whole.status == 0, whole.err
    losses = [float(row["span_loss"]) for row in table(tmp_path / "a" / "training.csv")]
    assert losses[-1] < 0.8 * losses[0]
    (evaluated,) = table(tmp_path / "a" / "evaluation.csv")
    assert float(evaluated["span_accuracy"]) > 0.5
    starts = sum(
        int(np.sum(batch.word_starts))
        for data in [open_dataset(str(spans))]
        for shard in data.shards
        for batch in data.batches(shard)
    )
    assert float(evaluated["word_starts"]) == starts
    cut = small(spans, tmp_path / "b", *form)
    assert trainer(*cut, "--steps-this-run=5").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", STEPS) == tensors(tmp_path / "a", STEPS)


def test_a_run_is_evaluated_and_exported_with_its_head(trainer, spans, tmp_path):
    assert trainer(*small(spans, tmp_path / "run", "--no-logs")).status == 0
    outcome = trainer("evaluate", f"--eval-data={spans}", f"--output-dir={tmp_path / 'run'}", "--device=cpu")
    assert outcome.status == 0, outcome.err
    assert "span_accuracy" in outcome.err
    outcome = trainer("convert", tmp_path / "run", tmp_path / "form")
    assert outcome.status == 0, outcome.err
    names = set(read_safetensors(str(tmp_path / "form" / "model.safetensors")))
    assert {"span_head.weight", "span_head.bias"} <= names
    assert not {"spans.weight", "spans.bias"} & names
    described = json.loads((tmp_path / "form" / "config.json").read_text(encoding="utf-8"))
    assert described["architectures"] == ["BertForSpans"]


def test_a_task_that_exports_nothing_of_its_own_keeps_the_names_of_its_head(
    trainer, spans, tmp_path, monkeypatch
):
    assert trainer(*small(spans, tmp_path / "run", "--no-logs")).status == 0
    monkeypatch.setattr(SpanTask, "exported", Task.exported)
    assert trainer("convert", tmp_path / "run", tmp_path / "form").status == 0
    names = set(read_safetensors(str(tmp_path / "form" / "model.safetensors")))
    assert {"spans.weight", "spans.bias"} <= names


def test_the_task_generates_the_examples_of_its_objective(trainer, tmp_path):
    run = words(None, tmp_path / "run", "--generated-data", f"--objective={NAME}", "--steps=3", "--warmup=0")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert f"out of {GENERATED}" in outcome.err
    assert all(0 < float(row["span_loss"]) < 9 for row in table(tmp_path / "run" / "training.csv"))


def test_a_task_that_generates_nothing_of_its_own_says_which_columns_are_missing(
    trainer, tmp_path, monkeypatch
):
    monkeypatch.setattr(SpanTask, "generated", Task.generated)
    run = words(None, tmp_path / "run", "--generated-data", f"--objective={NAME}", "--steps=3", "--warmup=0")
    refuse(trainer(*run), 2, "generated data have no word starts; train on a dataset")


@pytest.mark.thorough
def test_each_command_loads_ones_own_by_name_and_no_file_does(spans, tmp_path):
    """Each command in a process of its own, which knows nothing of the test's objective and task."""
    run, own = tmp_path / "run", f"--objective={NAME}"
    train = small(spans, run, "--steps-this-run=2")
    evaluate = ("evaluate", f"--eval-data={spans}", f"--output-dir={run}", "--device=cpu")
    split = ("split", *MODEL, f"--train-data={spans}", "--devices=1", "--memory=1", "--batch-size=4")
    convert = ("convert", run, tmp_path / "form")
    for command, flag in ((train, own), (evaluate, own), (split, own), (convert, f"--task={SpanTask.name}")):
        said = f"and no file may choose code to import; if you trust that code, give {flag.replace('=', ' ')}"
        refuse(launch("alone", 1, WORKER, *command, seconds=120), 2, said)
        outcome = launch("alone", 1, WORKER, *command, flag, seconds=120)
        assert outcome.status == 0, outcome.err
    assert "span_head.weight" in read_safetensors(str(tmp_path / "form" / "model.safetensors"))


def test_another_objective_than_the_datas_is_refused(trainer, spans, tmp_path):
    said = ("has the objective", "the trainer needs bert")
    refuse(trainer(*small(spans, tmp_path / "run", "--objective=bert")), 2, *said)
    assert trainer(*small(spans, tmp_path / "run", "--no-logs")).status == 0
    evaluate = ("evaluate", f"--eval-data={spans}", f"--output-dir={tmp_path / 'run'}", "--device=cpu")
    refuse(trainer(*evaluate, "--objective=bert"), 2, *said)


def test_another_task_than_the_runs_is_refused(trainer, spans, tmp_path):
    assert trainer(*small(spans, tmp_path / "run", "--no-logs")).status == 0
    outcome = trainer("convert", tmp_path / "run", tmp_path / "form", "--task=squad")
    refuse(outcome, 2, f"has learned the task {SpanTask.name}, task is squad")


def test_a_run_whose_task_is_gone_is_not_exported(trainer, spans, tmp_path, monkeypatch):
    assert trainer(*small(spans, tmp_path / "run", "--no-logs")).status == 0
    monkeypatch.delattr("tests.support.span_task.SpanTask")
    refuse(trainer("convert", tmp_path / "run", tmp_path / "form"), 2, SpanTask.name)


def test_it_starts_from_a_pre_trained_encoder(trainer, spans, pretrained, tmp_path):
    run = small(spans, tmp_path / "run", f"--start-from-ckpt={pretrained}", "--steps-this-run=1")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err


def test_masks_at_load_are_refused_for_examples_without_masked_words(trainer, spans, tmp_path):
    outcome = trainer(*small(spans, tmp_path / "run", "--masking=dynamic"))
    refuse(outcome, 2, "have no masked words to draw")


def test_a_task_that_is_not_there_is_one_line(trainer, spans, tmp_path, monkeypatch):
    monkeypatch.setattr(find_objective(NAME), "task", "tests.support.span_task:Absent")
    refuse(trainer(*small(spans, tmp_path / "run")), 2, "tests.support.span_task:Absent")


def test_masked_words_of_an_objective_of_ones_own_need_no_task(
    trainer, bertdata, corpus, small_vocabulary_file, tmp_path
):
    made = ("create", corpus[0], f"--output={tmp_path / 'set'}", f"--vocab={small_vocabulary_file}")
    created = bertdata(*made, f"--objective={BLOCKS}", "--max-seq-length=64", "--workers=1")
    assert created.status == 0, created.err
    outcome = trainer(*words(tmp_path / "set", tmp_path / "run", "--steps=2", "--warmup=0"))
    assert outcome.status == 0, outcome.err
    assert "mlm_loss" in table(tmp_path / "run" / "training.csv")[0]


@pytest.mark.parametrize("container", ["tfrecord", "hdf5", "parquet"])
@pytest.mark.parametrize("form", [(), ("--rows",), ("--pack-on-load",)])
@pytest.mark.thorough_after_first
def test_masks_at_load_stand_beside_other_groups(
    trainer, bertdata, corpus, small_vocabulary_file, tmp_path, container, form
):
    """The word that is masked is learned; resumed to the bit."""
    made = ("create", corpus[0], f"--output={tmp_path / 'set'}", f"--vocab={small_vocabulary_file}")
    more = (f"--objective={MASKED_SPANS}", "--max-seq-length=48", "--workers=1", f"--format={container}")
    created = bertdata(*made, *more)
    assert created.status == 0, created.err
    run = ("--masking=dynamic", "--steps=4", "--warmup=0", *form)
    whole = trainer(*words(tmp_path / "set", tmp_path / "a", *run))
    assert whole.status == 0, whole.err
    assert all(0 < float(row["mlm_loss"]) < 9 for row in table(tmp_path / "a" / "training.csv"))
    cut = words(tmp_path / "set", tmp_path / "b", *run)
    assert trainer(*cut, "--steps-this-run=2").status == 0
    assert trainer(*cut, "--resume").status == 0
    assert tensors(tmp_path / "b", 4) == tensors(tmp_path / "a", 4)


def test_what_is_no_task_is_one_line(trainer, spans, tmp_path, monkeypatch):
    monkeypatch.setattr(find_objective(NAME), "task", "tests.support.span_task:LABELS")
    refuse(trainer(*small(spans, tmp_path / "run")), 2, "span_task:LABELS': its own name is None")
