"""Runs of the trainer on a tiny model, and readers of the files that a run writes."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Outcome
from tests.support.launching import ROOT, launch
from trainer.__main__ import main

WORKER = ROOT / "tests" / "support" / "trainer_worker.py"
MODEL = ("--num-hidden-layers=2", "--hidden-size=32", "--num-attention-heads=2", "--intermediate-size=64")
RUN = ("--batch-size=4", "--steps=10", "--warmup=2", "--log-every=1", "--no-progress-bar")


def words(dataset: Path | None, place: Path, *more: object) -> list[str]:
    """Return the arguments of a short run. Later arguments override earlier ones."""
    data = [] if dataset is None else [f"--train-data={dataset}"]
    return ["pretrain", *MODEL, *RUN, *data, f"--output-dir={place}", *map(str, more)]


class Trainer:
    """A callable that runs the trainer in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._capsys.readouterr()
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as stop:
            status = int(stop.code or 0)
        printed = self._capsys.readouterr()
        return Outcome(status, printed.out, printed.err)


def start_workers(launcher: str, count: int, *arguments: object) -> Outcome:
    """Start workers as a user would, with the accidents that the environment variables ask for."""
    return launch(launcher, count, WORKER, *arguments, seconds=120)


def errors(outcome: Outcome) -> list[str]:
    """Return the error lines of all workers."""
    return [line for line in outcome.err.splitlines() if "trainer: error: " in line]


def refuse(outcome: Outcome, status: int, *said: str) -> None:
    """Assert this exit status, and a single error line that contains these words."""
    assert outcome.status == status, outcome.err
    (line,) = errors(outcome)
    for word in said:
        assert word in line, line


def losses(run: Path) -> list[dict[str, float]]:
    """Return the rows of training.csv, without the time columns."""
    with (run / "training.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("step", "epoch", "lr", "mlm_loss", "nsp_loss", "mlm_acc", "nsp_acc")
    return [{name: float(row[name]) for name in names if name in row} for row in rows]


def tensors(run: Path, number: int) -> dict[str, bytes]:
    """Return the bytes of the weights and moments in a checkpoint."""
    folder = run / "checkpoints" / f"step-{number:08d}"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


def run_without_torch(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the trainer's command in a Python that has no torch."""
    code = f"""
import sys
sys.modules["torch"] = None
from trainer.__main__ import main
sys.exit(main({list(words)!r}))
"""
    command = [sys.executable, "-c", code]
    width = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=width, check=False)


def assert_torch_is_missing(done: subprocess.CompletedProcess[str]) -> None:
    """Assert a single error line that says how to install torch."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "trainer: error: torch is not installed" in line
    assert "pip install --editable '.[train]'" in line
