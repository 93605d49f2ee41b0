"""Evaluation: the metrics by definition, over all workers, each example once."""

import json
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertdata.dataset.label_counts import LabelSurvey
from bertdata.dataset.reader import open_dataset
from tests.support.flat import flatten
from tests.support.padded_examples import PaddedForm
from tests.support.training_runs import refuse, start_workers, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.config.model import ModelConfig
from trainer.config.sections.evaluation import EvaluationSection
from trainer.config.settings import Config
from trainer.data.batches import FlatBatch
from trainer.data.examples import Rows
from trainer.data.loader import Loader
from trainer.devices.opening import find_device
from trainer.model.headed import BertForPreTraining
from trainer.run import evaluate, weights
from trainer.run.evaluation import Evaluation, EvaluationRecord
from trainer.run.runtime import make_model
from trainer.run.strategies import find_inference
from trainer.tasks.pretraining import Pretraining
from trainer.update.worker import ModelShare, Runtime
from trainer.workers.collective import Collective

SHAPE = ModelConfig(
    vocab_size=2000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run(training_set, tmp_path_factory) -> Path:
    """A run of four updates, with two checkpoints."""
    from trainer.__main__ import main

    place = tmp_path_factory.mktemp("evaluated") / "run"
    assert main(words(training_set, place, "--steps=4", "--checkpoint-every=2", "--no-logs")) == 0
    return place


@pytest.fixture(scope="module")
def other_sets(corpus, small_vocabulary_file, tmp_path_factory) -> dict[str, Path]:
    """A part's shards whose text keeps its case, and shards made with another vocabulary of the same size."""
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("others")
    tokens = small_vocabulary_file.read_text(encoding="utf-8").splitlines()
    (place / "vocab.txt").write_text("\n".join(tokens[:5] + tokens[:4:-1]) + "\n", encoding="utf-8")
    sizes = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1")
    kinds = {"cased": (small_vocabulary_file, "--no-lower-case"), "vocabulary": (place / "vocab.txt",)}
    for name, (vocabulary, *flags) in kinds.items():
        given = ["create", corpus[0], "--output", place / name, "--vocab", vocabulary, *sizes, *flags]
        assert main(list(map(str, given))) == 0
    return {name: place / name for name in kinds}


def warned(outcome) -> list[str]:
    """The warnings, without those about [UNK]."""
    lines = [line for line in outcome.err.splitlines() if "trainer: warning: " in line]
    return [line for line in lines if "[UNK]" not in line]


def test_evaluation_on_text_of_another_casing_or_vocabulary_warns(trainer, run, other_sets, tmp_path):
    newest = run / "checkpoints" / "step-00000004"
    for name, told in {
        "cased": f"cased: its text keeps its case, that of {newest} is lower-cased",
        "vocabulary": "vocabulary: was made with another vocabulary than",
    }.items():
        outcome = trainer("evaluate", f"--eval-data={other_sets[name]}", f"--output-dir={run}")
        assert outcome.status == 0, outcome.err
        (line,) = warned(outcome)
        assert told in line
    assert (
        "without --no-lower-case"
        in warned(trainer("evaluate", f"--eval-data={other_sets['cased']}", f"--output-dir={run}"))[0]
    )


def test_training_warns_of_evaluation_data_of_another_casing(trainer, training_set, other_sets, tmp_path):
    more = ("--steps=1", "--warmup=0", "--no-logs", f"--eval-data={other_sets['cased']}", "--eval-examples=4")
    outcome = trainer(*words(training_set, tmp_path / "run", *more))
    assert outcome.status == 0, outcome.err
    (line,) = warned(outcome)
    assert f"its text keeps its case, that of {training_set} is lower-cased" in line


def results(run: Path) -> dict[str, float]:
    lines = (run / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def measured(dataset: Path, **settings: object) -> tuple[EvaluationRecord, BertForPreTraining]:
    config = Config.of(**settings)
    device = find_device(config)
    runtime = Runtime(
        config=config,
        device=device,
        collective=Collective(device),
        model_share=ModelShare(copy=0, copies=1),
        task=Pretraining(),
    )
    model = make_model(runtime, SHAPE)
    inference = find_inference(runtime.worker(model))
    return Evaluation.of(runtime, open_dataset(str(dataset))).measure(inference, step=3, trained=12), model


def everything(dataset: Path) -> FlatBatch:
    data = open_dataset(str(dataset))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=data.examples)
    try:
        return flatten(next(loader).batches[0])
    finally:
        loader.close()


def plain_metrics(model: BertForPreTraining, batch: FlatBatch) -> dict[str, float]:
    """The definitions, slot by slot, in float64."""
    model.eval()
    with torch.no_grad():
        logits = model(batch)
    used = batch.masked_lm_weights > 0
    words = logits.masked_lm[used.flatten(), :2000].double()
    ids = batch.masked_lm_ids[used].long()
    pairs, labels = logits.next_sentence.double(), batch.next_sentence_labels.long()
    counts, pair_counts = np.bincount(ids.numpy(), minlength=2000), np.bincount(labels.numpy(), minlength=2)
    return {
        "masked_lm_accuracy": float((words.argmax(1) == ids).double().mean()),
        "masked_lm_loss": float(-words.log_softmax(1)[torch.arange(len(ids)), ids].mean()),
        "next_sentence_accuracy": float((pairs.argmax(1) == labels).double().mean()),
        "next_sentence_loss": float(-pairs.log_softmax(1)[torch.arange(len(labels)), labels].mean()),
        "most_frequent_accuracy": float(counts.max() / counts.sum()),
        "guess_masked_lm_loss": cross_entropy_by_shares(counts),
        "guess_next_sentence_accuracy": float(pair_counts.max() / pair_counts.sum()),
        "guess_next_sentence_loss": cross_entropy_by_shares(pair_counts),
    }


def cross_entropy_by_shares(counts: np.ndarray) -> float:
    """Of the counted labels, each guessed by its share, with 1 added to every count."""
    return float(-(counts * np.log((counts + 1) / (counts + 1).sum())).sum() / counts.sum())


@pytest.mark.parametrize("batch_size", [7, 64, 1000])
@pytest.mark.thorough_after_first
def test_metrics_are_as_defined_whatever_the_batches(training_set, batch_size):
    record, model = measured(training_set, eval_batch_size=batch_size)
    assert model.training  # the model is in training mode again
    expected = plain_metrics(model, everything(training_set))
    for name, value in expected.items():
        assert record.results[name] == pytest.approx(value, rel=1e-5), name
    found = record.results
    assert found["loss"] == pytest.approx(found["masked_lm_loss"] + found["next_sentence_loss"])
    assert (record.step, record.trained) == (3, 12)
    assert record.examples == open_dataset(str(training_set)).examples


def test_no_more_examples_than_asked_for(training_set):
    assert measured(training_set, eval_examples=10)[0].examples == 10


def test_the_most_frequent_label_is_counted_by_its_weight(training_set):
    batch = everything(training_set)
    counts = np.bincount(batch.masked_lm_ids[batch.masked_lm_weights > 0].numpy())
    found = LabelSurvey.from_json(Pretraining().survey(open_dataset(str(training_set))))
    assert found.words.most_frequent == counts.argmax()


def test_a_run_evaluates_as_often_as_asked_and_at_its_end(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path, f"--eval-data={training_set}", "--eval-examples=16", "--eval-every=4")
    outcome = trainer(*run)
    assert outcome.status == 0, outcome.err
    assert [line.split(":")[0] for line in outcome.err.splitlines() if "evaluated 16 examples" in line] == [
        "step 4",
        "step 8",
        "step 10",
    ]
    assert "masked_lm_accuracy 0." in outcome.err
    assert '(always "' in outcome.err
    assert results(tmp_path)["global_step"] == 10
    # Evaluation does not change training.
    assert trainer(*words(training_set, tmp_path / "without")).status == 0
    for name in ("model", "optimizer"):
        one, other = (find_checkpoints(str(place))[10] for place in (tmp_path, tmp_path / "without"))
        assert (one / f"{name}.safetensors").read_bytes() == (other / f"{name}.safetensors").read_bytes()


def test_mlperfs_rule_says_how_often(training_set):
    expected = {256: 150_000, 3072: 175_000, 8192: 225_000}
    for batch, examples in expected.items():
        assert EvaluationSection().interval(batch) == examples


def test_training_stops_at_the_target(trainer, training_set, tmp_path, monkeypatch):
    measure = Evaluation.measure

    def better_and_better(self, model, *, step, trained):
        record = measure(self, model, step=step, trained=trained)
        return replace(record, results={**record.results, "masked_lm_accuracy": step / 10})

    monkeypatch.setattr(Evaluation, "measure", better_and_better)
    run = words(training_set, tmp_path, f"--eval-data={training_set}", "--eval-every=3", "--eval-examples=8")
    outcome = trainer(*run, "--target-accuracy=0.6")
    assert outcome.status == 0
    assert "the target accuracy 0.6 is reached" in outcome.err
    assert results(tmp_path)["global_step"] == 6
    assert list(find_checkpoints(str(tmp_path))) == [6]


def test_the_newest_checkpoint_is_evaluated_or_the_one_asked_for(trainer, run, training_set):
    found = {}
    for more, step in (([], 4), (["--resume-step=2"], 2)):
        outcome = trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={run}", *more)
        assert outcome.status == 0, outcome.err
        assert "the most frequent masked word of the training set is " in outcome.err
        found[step] = results(run)
        assert found[step]["global_step"] == step
    assert found[2]["masked_lm_loss"] != found[4]["masked_lm_loss"]
    refuse(
        trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={run}", "--resume-step=3"),
        2,
        "holds no checkpoint 3; there are 2, 4",
    )


def test_polling_evaluates_each_checkpoint_that_appears(trainer, run, training_set, tmp_path):
    there, coming = find_checkpoints(str(run)).values()
    (tmp_path / "checkpoints").mkdir()
    shutil.copytree(there, tmp_path / "checkpoints" / there.name)

    def appear() -> None:
        while not (tmp_path / "eval_results.txt").exists():
            time.sleep(0.05)
        shutil.copytree(coming, tmp_path / ".coming")
        (tmp_path / ".coming").rename(tmp_path / "checkpoints" / coming.name)

    thread = threading.Thread(target=appear)
    thread.start()
    arguments = ["evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}"]
    outcome = trainer(*arguments, "--poll", "--poll-timeout=60", "--eval-examples=8")
    thread.join()
    assert outcome.status == 0, outcome.err
    lines = [line.split(":")[0] for line in outcome.err.splitlines() if "evaluated 8 examples" in line]
    assert lines == ["step 2", "step 4"]  # and there it ends: the run has no more steps


def test_polling_goes_on_to_the_checkpoints_of_a_run_that_was_prolonged(
    trainer, run, training_set, tmp_path, monkeypatch
):
    shutil.copytree(run / "checkpoints", tmp_path / "checkpoints")
    read = evaluate.read_state

    def of_two_steps(path):
        state = read(path)
        return replace(state, config=state.config | {"steps": state.step})

    monkeypatch.setattr(evaluate, "read_state", of_two_steps)
    arguments = ["evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}", "--eval-examples=8"]
    outcome = trainer(*arguments, "--poll", "--poll-timeout=60")
    assert outcome.status == 0, outcome.err
    lines = [line.split(":")[0] for line in outcome.err.splitlines() if "evaluated 8 examples" in line]
    assert lines == ["step 2", "step 4"]


@pytest.mark.parametrize(
    ("module", "reader"), [(evaluate, "_read_checkpoint_facts"), (weights, "read_weights_into")]
)
def test_polling_passes_over_a_checkpoint_that_is_pruned_under_it(
    trainer, run, training_set, tmp_path, monkeypatch, module, reader
):
    shutil.copytree(run / "checkpoints", tmp_path / "checkpoints")
    read = getattr(module, reader)

    def pruned(*arguments):
        path = str(arguments[1])
        if path.endswith("step-00000002"):
            shutil.rmtree(path)
        return read(*arguments)

    monkeypatch.setattr(module, reader, pruned)
    arguments = ["evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}", "--eval-examples=8"]
    outcome = trainer(*arguments, "--poll", "--poll-timeout=60")
    assert outcome.status == 0, outcome.err
    assert [line.split(":")[0] for line in outcome.err.splitlines() if "evaluated 8" in line] == ["step 4"]
    refuse(trainer(*arguments, "--resume-step=2"), 2, "holds no checkpoint 2")


def test_polling_ends_when_nothing_comes(trainer, run, training_set, tmp_path):
    shutil.copytree(find_checkpoints(str(run))[2], tmp_path / "checkpoints" / "step-00000002")
    arguments = ["evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}", "--eval-examples=8"]
    since = time.monotonic()
    assert trainer(*arguments, "--poll", "--poll-timeout=0.5").status == 0
    assert time.monotonic() - since < 20
    assert results(tmp_path)["global_step"] == 2


def test_what_cannot_be_evaluated_is_refused(trainer, run, training_set, tmp_path):
    refuse(trainer("evaluate", f"--output-dir={run}"), 2, "eval_data is missing")
    refuse(trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}"), 2, "no checkpoint")
    path = find_checkpoints(str(run))[4]
    shutil.copytree(path, tmp_path / "checkpoints" / path.name)
    state = tmp_path / "checkpoints" / path.name / "state.json"
    values = json.loads(state.read_text(encoding="utf-8"))
    state.write_text(json.dumps({**values, "step": 5}), encoding="utf-8")
    refuse(
        trainer("evaluate", f"--eval-data={training_set}", f"--output-dir={tmp_path}"),
        1,
        f"{state}: is damaged",
    )


@pytest.mark.thorough
def test_two_workers_measure_what_one_does(trainer, run, training_set):
    arguments = ["evaluate", f"--eval-data={training_set}", f"--output-dir={run}", "--eval-batch-size=9"]
    assert trainer(*arguments).status == 0
    alone = results(run)
    (run / "eval_results.txt").unlink()
    outcome = start_workers("torchrun", 2, *arguments)
    assert outcome.status == 0, outcome.err
    assert results(run) == pytest.approx(alone, rel=1e-5)
