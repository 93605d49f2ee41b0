"""Fine-tuning by two workers: as by one that accumulates; stopped, killed and resumed as pre-training is."""

import csv
import json
import os
import signal

import pytest

from bertdata.cli.main import main as bertdata
from tests.support.commands import contents
from tests.support.fine_tuning import evaluations, finetune_words, squad_file, table
from tests.support.launching import HOROVODRUN
from tests.support.training_runs import errors, refuse, start_workers, tensors
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.tasks.heads import BertForSequenceClassification

pytestmark = pytest.mark.usefixtures("one_thread")

PREDICTED = {
    "squad": ("predictions.json", "nbest_predictions.json"),
    "classification": ("predictions.tsv",),
}
TIMES = {"iter_time", "samples_per_sec", "total_time", "tokens_per_second", "tflops"}
TIMES |= {"peak_share", "memory_gib", "data_wait", "data_wait_share"}


@pytest.fixture
def command(pretrained, tmp_path):
    """The arguments of ten updates of a task, and an evaluation at their end; five of them are warm-up."""
    files = {
        "squad": squad_file(tmp_path / "squad.json", 23),
        "classification": table(tmp_path / "t.tsv", 45),
    }

    def arguments(task, run, *more):
        given = (f"--train-file={files[task]}", f"--eval-file={files[task]}", "--steps=10", "--log-every=1")
        quick = ("--batch-size=4", "--eval-every=0", "--checkpoint-every=5", "--warmup=5")
        return finetune_words(task, pretrained, tmp_path / run, *given, *quick, *more)

    return arguments


def rows(run):
    """The rows of training.csv, without times."""
    with (run / "training.csv").open(encoding="utf-8") as file:
        return [
            {name: float(value) for name, value in row.items() if value and name not in TIMES}
            for row in csv.DictReader(file)
        ]


def same_results(one, other, task):
    """Losses and metrics are equal but for rounding, the predicted texts and labels the same."""
    assert len(rows(one)) == len(rows(other)) == 10
    for ours, others in zip(rows(one), rows(other), strict=True):
        assert ours == pytest.approx(others, abs=2e-5)
    (found,), (expected,) = evaluations(one), evaluations(other)
    assert found == pytest.approx(expected, abs=2e-5)
    first = PREDICTED[task][0]
    assert (one / first).read_bytes() == (other / first).read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("launcher", "task"),
    [
        ("torchrun", "squad"),
        pytest.param("horovodrun", "classification", marks=pytest.mark.horovod),
        ("dist", "squad"),
    ],
)
def test_two_workers_are_one_that_accumulates(launcher, task, trainer, command, tmp_path):
    assert trainer(*command(task, "one", "--accumulation=2")).status == 0
    if launcher == "dist":
        outcome = start_workers("alone", 1, *command(task, "two", "--dist", "--world_size=2"))
    else:
        outcome = start_workers(launcher, 2, *command(task, "two"))
    assert outcome.status == 0, outcome.err
    for said in ("connecting 2 workers", "evaluating on", "making the first update"):
        assert outcome.err.count(said) == 1, said
    warnings = [line for line in outcome.err.splitlines() if "warning" in line]
    others = [line for line in warnings if "it is the training data" not in line]  # of the test's own file
    assert others == [], "features are one file, whoever reads it"
    same_results(tmp_path / "two", tmp_path / "one", task)
    made = sorted((tmp_path / "two" / "features").iterdir())
    assert outcome.err.count("features made in") == len(made) == {"squad": 2, "classification": 1}[task]
    assert all(bertdata(["verify-md5", str(one)]) == 0 for one in made)


@pytest.mark.thorough
@pytest.mark.parametrize("task", ["squad", "classification"])
def test_two_workers_evaluate_and_predict_as_one_does(task, trainer, command, tmp_path):
    assert trainer(*command(task, "run")).status == 0
    run = tmp_path / "run"
    plain = tmp_path / ("squad.json" if task == "squad" else "t.tsv")
    given = ("--do-predict", f"--predict-file={plain}", "--eval-batch-size=4", f"--start-from-ckpt={run}")
    assert trainer("evaluate", f"--output-dir={tmp_path / 'one'}", *given).status == 0
    outcome = start_workers("torchrun", 2, "evaluate", f"--output-dir={tmp_path / 'two'}", *given)
    assert outcome.status == 0, outcome.err
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one.keys() == two.keys(), "nothing is written twice, or beside"
    for name in PREDICTED[task][:1]:
        assert one[name] == two[name] == one[f"predict/{name}"] == two[f"predict/{name}"]
    for name in PREDICTED[task][1:]:
        ours, others = (json.loads(found[name]) for found in (one, two))
        assert {key: [best["text"] for best in value] for key, value in ours.items()} == {
            key: [best["text"] for best in value] for key, value in others.items()
        }
    lines = [found["eval_results.txt"].decode().split() for found in (one, two)]
    assert lines[0][::3] == lines[1][::3]
    assert list(map(float, lines[0][2::3])) == pytest.approx(list(map(float, lines[1][2::3])), rel=1e-5)


@pytest.mark.thorough
def test_killed_workers_resume_to_the_same_bits(command, tmp_path, monkeypatch):
    assert start_workers("torchrun", 2, *command("classification", "straight")).status == 0
    accident = {"what": "kill", "rank": 1, "update": 8}
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps(accident))
    outcome = start_workers("torchrun", 2, *command("classification", "cut"))
    assert outcome.status != 0
    assert any("worker 1 of 2 was lost: its process ended" in line for line in errors(outcome)), outcome.err
    assert list(find_checkpoints(str(tmp_path / "cut"))) == [5]
    monkeypatch.delenv("TRAINER_ACCIDENT")
    resumed = start_workers("torchrun", 2, *command("classification", "cut", "--resume"))
    assert resumed.status == 0, resumed.err
    assert tensors(tmp_path / "cut", 10) == tensors(tmp_path / "straight", 10)
    assert rows(tmp_path / "cut") == rows(tmp_path / "straight")
    for name in ("predictions.tsv", "evaluation.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["torchrun", HOROVODRUN])
def test_sigterm_to_one_worker_stops_both_in_the_same_micro_batch(launcher, command, tmp_path, monkeypatch):
    accident = {"what": "term", "rank": 1, "update": 4, "micro_batch": 2}
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps(accident))
    outcome = start_workers(launcher, 2, *command("squad", "run", "--accumulation=3"))
    assert outcome.status == 0, outcome.err
    assert "stopped after update 3 as requested" in outcome.err
    assert list(find_checkpoints(str(tmp_path / "run"))) == [3]
    assert not (tmp_path / "run" / "predictions.json").exists()


@pytest.mark.thorough
def test_sigterm_saves_and_the_run_goes_on_to_the_same_bits(trainer, command, tmp_path, monkeypatch):
    assert trainer(*command("classification", "whole")).status == 0
    forward, passes = BertForSequenceClassification.forward, []

    def interrupted(self, batch):
        passes.append(1)
        if len(passes) == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return forward(self, batch)

    monkeypatch.setattr(BertForSequenceClassification, "forward", interrupted)
    plain = table(tmp_path / "plain.tsv", 5, labelled=False)
    more = ("--do-predict", f"--predict-file={plain}")
    stopped = trainer(*command("classification", "run", *more))
    assert stopped.status == 0
    assert "as requested; --resume continues" in stopped.err
    assert not (tmp_path / "run" / "predict").exists(), "predictions are the last model's"
    monkeypatch.undo()
    assert trainer(*command("classification", "run", *more, "--resume")).status == 0
    assert tensors(tmp_path / "run", 10) == tensors(tmp_path / "whole", 10)
    assert (tmp_path / "run" / "predict" / "predictions.tsv").exists()


@pytest.mark.thorough
def test_what_rank_0_refuses_is_said_once_and_ends_all(command, tmp_path):
    (tmp_path / "squad.json").write_text("{}", encoding="utf-8")
    outcome = start_workers("torchrun", 2, *command("squad", "run"))
    assert outcome.status != 0
    (line,) = errors(outcome)
    assert "squad.json: lacks 'data', expected a list (SQuAD's form)" in line


def test_a_launcher_that_is_missing_is_said(trainer, command, tmp_path):
    outcome = trainer(*command("classification", "run", "--world_size=8"))
    refuse(outcome, 2, "world_size is 8, found 1: start as many workers, or, without a launcher, give --dist")
    assert not (tmp_path / "run" / "checkpoints").exists()
