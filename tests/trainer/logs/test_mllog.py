"""MLPerf's log, judged by the compliance checker of mlperf-logging by the rules of training 1.0.0."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.report_records import COLUMNS, Clock, evaluation, make_reporter, record
from tests.support.training_runs import words
from trainer.config.settings import Config
from trainer.logs.reporter import RunPlan

PLAN = RunPlan(
    workers=2, accumulation=4, update_examples=32, interval=64, eval_examples=100, trained=0, step=0,
    sequence_length=512,
)  # fmt: skip


def checked(path: Path) -> tuple[bool, str]:
    """The checker's verdict on the file, and what it says."""
    where = path.parent / "checker.log"
    flags = ["--usage=training", "--ruleset=1.0.0", "--werror", f"--log_output={where}"]
    done = subprocess.run(
        [sys.executable, "-m", "mlperf_logging.compliance_checker", *flags, str(path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    said = done.stdout + done.stderr + where.read_text(encoding="utf-8")
    return "SUCCESS" in said, said


def events(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert all(line.startswith(":::MLLOG {") for line in lines)
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]


def run(folder: Path, accuracy: float, status: str = "success", **keys) -> Path:
    """The log of four updates with two evaluations, of which the last has the accuracy."""
    clock = Clock()
    config = Config.of(
        output_dir=str(folder), mllog=True, optimiser="lamb-mlperf", lr_schedule="mlperf", steps=4,
        warmup=1, seed=7, **keys,
    )  # fmt: skip
    reporter = make_reporter(config, COLUMNS, rank=0, clock=clock)
    reporter.plan(PLAN)
    reporter.begin()
    for step in range(1, 5):
        clock.now += 1.5
        reporter.update(record(step))
        if step % 2 == 0:
            values, text = evaluation(step)
            reporter.begin_evaluation(step, values["trained"])
            reporter.evaluation(values | {"masked_lm_accuracy": accuracy if step == 4 else 0.2}, text)
    reporter.saved(4)
    reporter.close(status)
    return folder / "mllog.txt"


def test_the_compliance_checker_finds_nothing_wrong(tmp_path):
    is_right, said = checked(run(tmp_path, 0.73))
    assert is_right, said


def test_a_missed_target_is_aborted_and_the_checker_says_so(tmp_path):
    path = run(tmp_path, 0.00014)
    assert events(path)[-1]["metadata"]["status"] == "aborted"
    is_right, said = checked(path)
    assert not is_right
    assert "Failed checks for eval_accuracy" in said


@pytest.mark.parametrize(
    ("accuracy", "keys", "status", "wanted"),
    [
        (0.72, {}, "success", "success"),
        (0.71, {}, "success", "aborted"),
        (0.5, {"target_accuracy": 0.5}, "success", "success"),
        (0.73, {}, "stopped", "aborted"),
        (0.73, {}, "aborted", "aborted"),
    ],
)
def test_a_run_is_a_success_that_has_ended_at_its_target(tmp_path, accuracy, keys, status, wanted):
    assert events(run(tmp_path, accuracy, status, **keys))[-1]["metadata"]["status"] == wanted


def test_events_settings_and_counts_are_mlperfs(tmp_path):
    found = events(run(tmp_path, 0.73, mllog_org="somebody", steps_per_update=2))
    values = {event["key"]: event["value"] for event in found}
    wanted = {
        "submission_org": "somebody", "submission_benchmark": "bert", "seed": 7, "global_batch_size": 16,
        "gradient_accumulation_steps": 4, "opt_name": "lamb", "opt_lamb_beta_1": 0.9,
        "opt_lamb_weight_decay_rate": 0.01, "opt_epsilon": 1e-6, "opt_learning_rate_training_steps": 8,
        "num_warmup_steps": 2, "train_samples": 128, "eval_samples": 100, "max_sequence_length": 512,
    }  # fmt: skip
    assert {name: values[name] for name in wanted} == wanted
    blocks = [event["metadata"] for event in found if event["key"] == "block_start"]
    assert [(block["first_epoch_num"], block["epoch_count"]) for block in blocks] == [(0, 64), (64, 64)]
    spans = [event["key"] for event in found if event["event_type"] != "POINT_IN_TIME"]
    assert spans == [
        "init_start", "init_stop", "run_start", "block_start", "block_stop", "eval_start", "eval_stop",
        "block_start", "block_stop", "eval_start", "eval_stop", "checkpoint_start", "checkpoint_stop",
        "run_stop",
    ]  # fmt: skip
    accuracy = next(event for event in found if event["key"] == "eval_accuracy")
    assert (accuracy["value"], accuracy["time_ms"]) == (0.2, 1_000_003_000)
    assert (accuracy["metadata"]["epoch_num"], accuracy["metadata"]["step_num"]) == (64, 4)


@pytest.mark.usefixtures("one_thread")
def test_the_log_of_a_real_run_is_compliant_in_the_open_division(trainer, training_set, tmp_path):
    flags = ("--mllog", "--mllog-division=open", "--target-accuracy=0.0001", "--optimiser=lamb-mlperf")
    line = words(training_set, tmp_path / "run", "--steps=2", f"--eval-data={training_set}", *flags)
    done = trainer(*line, "--eval-examples=8", "--warmup=1", "--lr-schedule=mlperf")
    assert done.status == 0, done.err
    is_right, said = checked(tmp_path / "run" / "mllog.txt")
    assert is_right, said


def test_a_resumed_run_drops_the_events_beyond_its_checkpoint(tmp_path):
    """After SIGKILL the evaluations of later updates were in the log twice."""

    def train(steps: range, resume_step: int | None) -> None:
        config = Config.of(output_dir=str(tmp_path), mllog=True, optimiser="lamb-mlperf", steps=8)
        reporter = make_reporter(config, COLUMNS, rank=0, resume_step=resume_step, clock=Clock())
        reporter.plan(replace(PLAN, step=resume_step or 0))
        reporter.begin()
        for step in steps:
            reporter.update(record(step))
            if step % 2 == 0:
                values, text = evaluation(step)
                reporter.begin_evaluation(step, values["trained"])
                reporter.evaluation(values, text)
                reporter.saved(step)
        reporter.close()

    path = tmp_path / "mllog.txt"
    train(range(1, 9), None)  # of an earlier run in the same file
    train(range(1, 7), None)
    with path.open("a", encoding="utf-8") as file:
        file.write("a line of another program\n:::MLLOG {")  # the last line was cut off by a crash
    train(range(3, 9), 2)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines.count("a line of another program") == 1
    found = [json.loads(line[9:]) for line in lines if line.startswith(":::MLLOG ")]
    for key in ("eval_accuracy", "eval_start", "checkpoint_stop"):
        steps = [event["metadata"]["step_num"] for event in found if event["key"] == key]
        assert steps == [2, 4, 6, 8, 2, 4, 6, 8], key
