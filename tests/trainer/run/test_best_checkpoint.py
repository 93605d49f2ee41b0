"""The checkpoint of the best evaluation is kept, used and remembered, and patience ends a run."""

import json
import math
import shutil
from dataclasses import replace

import pytest
from safetensors.torch import load_file

from bertdata.io import storage
from tests.support.fine_tuning import finetune_words, table
from tests.support.training_runs import refuse, tensors, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import choose_checkpoint, read_state
from trainer.errors import StopRequested
from trainer.run.best_checkpoint import add_evaluation
from trainer.run.evaluation import Evaluation

ACCURACIES = (0.5, 0.6, 0.9, 0.7, 0.9, 0.8)
"""Accuracy of the evaluation after each update of the runs here. The first of two equal ones is the best."""


def test_the_first_of_equal_values_is_the_best_and_no_number_never_is():
    best = add_evaluation({}, "acc", {"acc": math.nan, "loss": 1.0}, 1)
    assert best == {}
    for number, value in enumerate((0.5, 0.7, 0.7, math.nan, 0.6), 2):
        best = add_evaluation(best, "acc", {"acc": value}, number)
    assert best == {"metric": "acc", "value": 0.7, "number": 3, "evaluations_since": 3}


@pytest.mark.parametrize("metric", ["loss", "masked_lm_loss"])
def test_the_lowest_loss_is_the_best(metric):
    best = {}
    for number, value in enumerate((3.0, 2.0, 2.5), 1):
        best = add_evaluation(best, metric, {metric: value}, number)
    assert best == {"metric": metric, "value": 2.0, "number": 2, "evaluations_since": 1}


@pytest.fixture
def finetune(trainer, pretrained, tmp_path, monkeypatch, one_thread):
    """A fine-tuning run into ``run`` that is evaluated after each of six updates, with ACCURACIES."""
    measure = Evaluation.measure

    def measure_scripted(self, strategy, *, step, trained):
        record = measure(self, strategy, step=step, trained=trained)
        accuracy = ACCURACIES[step - 1] if step else 0.0
        return replace(record, results={**record.results, "acc": accuracy})

    monkeypatch.setattr(Evaluation, "measure", measure_scripted)
    data = table(tmp_path / "train.tsv", 16)
    given = (f"--train-file={data}", f"--eval-file={data}", "--steps=6", "--eval-every=1", "--keep-best=acc")

    def call(*more: object, run: str = "run"):
        place = run if storage.is_remote(run) else tmp_path / run
        return trainer(*finetune_words("classification", pretrained, place, *given, *more))

    return call


FEW = ("--checkpoint-every=4", "--keep-checkpoints=1")


def read_best(run):
    return read_state(choose_checkpoint(str(run))).best


def test_the_best_checkpoint_is_kept_beside_the_newest_and_has_the_weights_of_its_update(finetune, tmp_path):
    outcome = finetune(*FEW)
    assert outcome.status == 0, outcome.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3, 6]
    assert read_best(tmp_path / "run") == {
        "metric": "acc",
        "value": 0.9,
        "number": 3,
        "evaluations_since": 3,
    }
    assert "the best acc is 0.9, of " in outcome.err
    assert finetune("--steps-this-run=3", run="short").status == 0
    assert tensors(tmp_path / "run", 3) == tensors(tmp_path / "short", 3)


def test_without_the_key_only_the_newest_checkpoints_are_kept(finetune, trainer, pretrained, tmp_path):
    data = tmp_path / "train.tsv"
    given = (f"--train-file={data}", f"--eval-file={data}", "--steps=6", "--eval-every=1", *FEW)
    assert trainer(*finetune_words("classification", pretrained, tmp_path / "plain", *given)).status == 0
    assert list(find_checkpoints(str(tmp_path / "plain"))) == [6]
    assert read_best(tmp_path / "plain") == {}


def test_prediction_export_evaluation_and_a_new_start_take_the_best(finetune, trainer, tmp_path):
    plain = table(tmp_path / "plain.tsv", 4, labelled=False)
    outcome = finetune(*FEW, "--do-predict", f"--predict-file={plain}")
    assert outcome.status == 0, outcome.err
    run, best = tmp_path / "run", tmp_path / "run" / "checkpoints" / "step-00000003"
    chosen = "taking step-00000003 with the best acc (0.9); the newest is step-00000006"
    assert f"predictions by {best}" in outcome.err
    asked = trainer("predict", run, "The tower is old .", "--json")
    assert chosen in asked.err
    assert asked.out == trainer("predict", best, "The tower is old .", "--json").out
    newest = trainer("predict", run / "checkpoints" / "step-00000006", "The tower is old .", "--json")
    assert asked.out != newest.out
    assert newest.err == ""
    exported = trainer("convert", run, tmp_path / "export")
    assert exported.status == 0
    assert chosen in exported.err
    saved = load_file(tmp_path / "export" / "model.safetensors")
    assert saved["classifier.weight"].equal(load_file(best / "model.safetensors")["classifier.weight"])
    evaluated = trainer("evaluate", f"--output-dir={run}", "--no-progress-bar")
    assert evaluated.status == 0, evaluated.err
    assert "step 3: evaluated 16 examples" in evaluated.err
    again = finetune(f"--start-from-ckpt={run}", "--steps=1", "--warmup=0", run="again")
    assert again.status == 0, again.err
    assert chosen in again.err


def test_a_run_in_a_bucket_keeps_and_takes_its_best_checkpoint(finetune, trainer, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    url, text = "memory://best-checkpoint/run", ("The tower is old .", "--json")
    plain = table(tmp_path / "plain.tsv", 4, labelled=False)
    assert finetune(*FEW).status == 0
    assert finetune(*FEW, "--steps-this-run=5", run=url).status == 0
    shutil.rmtree(tmp_path / "cache")
    resumed = finetune(*FEW, "--resume", "--do-predict", f"--predict-file={plain}", run=url)
    assert resumed.status == 0, resumed.err
    assert f"predictions by {url}/checkpoints/step-00000003" in resumed.err
    states = [name for name in storage.list_files(url) if name.endswith("state.json")]
    assert states == [f"checkpoints/step-{number:08d}/state.json" for number in (3, 6)]
    shutil.rmtree(tmp_path / "cache")
    asked = trainer("predict", url, *text)
    assert f"{url}: taking step-00000003 with the best acc (0.9); the newest is step-00000006" in asked.err
    assert asked.out == trainer("predict", tmp_path / "run", *text).out
    evaluated = trainer("evaluate", f"--output-dir={url}", "--no-progress-bar")
    assert evaluated.status == 0, evaluated.err
    assert "step 3: evaluated 16 examples" in evaluated.err
    # --resume-from goes on from the newest, as from a local run.
    further = finetune(f"--resume-from={url}", run="further")
    assert further.status == 0, further.err
    assert f"resumed {url}: updates 6 to 6" in further.err


@pytest.mark.parametrize("after", [2, 3, 5])
def test_a_resumed_run_ends_with_the_best_checkpoint_of_an_uninterrupted_one(finetune, tmp_path, after):
    assert finetune(*FEW).status == 0
    shutil.move(tmp_path / "run", tmp_path / "whole")
    assert finetune(*FEW, f"--steps-this-run={after}").status == 0
    assert finetune(*FEW, "--resume").status == 0
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3, 6]
    assert read_best(tmp_path / "run") == read_best(tmp_path / "whole")
    for number in (3, 6):
        assert tensors(tmp_path / "run", number) == tensors(tmp_path / "whole", number)


def test_a_resumed_run_warns_if_the_best_was_measured_on_other_examples(finetune, tmp_path):
    assert finetune(*FEW, "--steps-this-run=3").status == 0
    same = finetune(*FEW, "--resume", "--steps-this-run=1")
    fewer = finetune(*FEW, "--resume", "--steps-this-run=1", "--eval-examples=8")
    assert "so far" not in same.err
    told = (
        "the best acc so far, 0.9, was measured on other examples: eval_examples was not given, and is 8 now"
    )
    assert f"warning: {told}" in fewer.err


def test_an_evaluation_that_a_signal_cut_short_counts_after_the_resume(finetune, tmp_path, monkeypatch):
    """The checkpoint was written without its evaluation, and is written again with it."""
    measure = Evaluation.measure

    def stop_at_3(self, strategy, *, step, trained):
        if step == 3:
            raise StopRequested
        return measure(self, strategy, step=step, trained=trained)

    with monkeypatch.context() as patch:
        patch.setattr(Evaluation, "measure", stop_at_3)
        assert finetune(*FEW).status == 0
    assert read_best(tmp_path / "run")["number"] == 2
    assert finetune(*FEW, "--resume", "--steps-this-run=1").status == 0
    assert read_state(find_checkpoints(str(tmp_path / "run"))[3]).best["number"] == 3
    assert finetune(*FEW, "--resume").status == 0
    assert read_best(tmp_path / "run")["number"] == 3


def test_patience_ends_the_run_writes_predictions_and_holds_after_a_resume(finetune, tmp_path):
    plain = table(tmp_path / "plain.tsv", 4, labelled=False)
    more = ("--do-predict", f"--predict-file={plain}")
    outcome = finetune(*FEW, "--patience=2", *more)
    assert outcome.status == 0, outcome.err
    assert "acc is not better than 0.9 for 2 evaluations: training ends (patience)" in outcome.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3, 5]
    assert (tmp_path / "run" / "predict" / "predictions.tsv").exists()
    resumed = finetune(*FEW, "--patience=2", *more, "--resume")
    assert "nothing is left to do after update 5" in resumed.err
    assert f"predictions by {tmp_path / 'run' / 'checkpoints' / 'step-00000003'}" in resumed.err
    assert finetune(*FEW, "--patience=4", "--resume").status == 0
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3, 6]


def test_another_result_or_none_after_a_resume_begins_anew(finetune, tmp_path):
    assert finetune(*FEW, "--steps-this-run=4").status == 0
    assert finetune(*FEW, "--resume", "--keep-best=loss").status == 0
    best = read_best(tmp_path / "run")
    assert best["metric"] == "loss"
    assert best["number"] > 4


def test_a_pretraining_run_keeps_the_checkpoint_of_the_lowest_loss(trainer, training_set, tmp_path):
    more = ("--steps=4", "--eval-every=1", f"--eval-data={training_set}", "--eval-examples=8", "--warmup=0")
    outcome = trainer(*words(training_set, tmp_path / "run", *more, "--keep-best=masked_lm_loss"))
    assert outcome.status == 0, outcome.err
    with (tmp_path / "run" / "evaluation.csv").open(encoding="utf-8") as file:
        names, *rows = [line.rstrip("\n").split(",") for line in file]
    losses = [float(row[names.index("masked_lm_loss")]) for row in rows]
    assert read_best(tmp_path / "run")["number"] == 1 + losses.index(min(losses))


def test_wrong_keys_are_refused_before_anything_is_made(finetune, trainer, training_set, tmp_path):
    refuse(finetune("--keep-best=f1"), 2, "keep_best is 'f1', expected a result of the evaluations: loss,")
    refuse(finetune("--keep-best=guess_acc"), 2, "expected a result of the evaluations")
    refuse(finetune("--no-do-eval"), 2, "keep_best acc: the run evaluates nothing; give --eval-file")
    assert not (tmp_path / "run" / "checkpoints").exists()
    place = tmp_path / "pretraining"
    refuse(trainer(*words(training_set, place, "--keep-best=loss")), 2, "evaluates nothing; give --eval-data")
    refuse(trainer(*words(training_set, place, "--patience=2")), 2, "patience needs keep_best")
    refuse(trainer(*words(training_set, place, "--keep-best=loss", "--patience=0")), 2, "patience is 0")


def test_a_best_checkpoint_that_is_gone_is_said(finetune, trainer, tmp_path):
    assert finetune(*FEW).status == 0
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000003")
    asked = trainer("predict", tmp_path / "run", "The tower is old .")
    assert asked.status == 0
    assert "checkpoint 3 with the best acc (0.9) is missing: taking step-00000006" in asked.err
    state = json.loads((tmp_path / "run" / "checkpoints" / "step-00000006" / "state.json").read_text())
    assert state["best"]["number"] == 3
