"""Masked spans learned by two stages, by shards or by two copies: as one process learns them."""

import csv
from pathlib import Path
from typing import Any

import pytest

from tests.support.training_runs import start_workers, words

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.thorough]

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")
SPLIT = {
    "pipelined": ("--strategy=pipelined", "--bandwidth=10"),
    "sharded": ("--strategy=sharded",),
    "copies": (),
}


@pytest.fixture(scope="module")
def spans(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> Path:
    from bertdata.cli.main import main

    place = tmp_path_factory.mktemp("spans") / "made"
    given = [*map(str, corpus), f"--vocab={small_vocabulary_file}", "--objective=span", "--workers=1"]
    assert main(["create", *given, f"--output={place}", "--max-seq-length=64"]) == 0
    return place


def boundary_losses(run: Path) -> list[float]:
    with (run / "training.csv").open(encoding="utf-8") as file:
        return [float(row["boundary_loss"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("strategy", SPLIT)
def test_two_processes_learn_what_one_does(strategy, trainer, spans, tmp_path):
    more = ("--steps=6", *NO_DROPOUT)
    outcome = start_workers("torchrun", 2, *words(spans, tmp_path / "split", *more, *SPLIT[strategy]))
    assert outcome.status == 0, outcome.err
    assert trainer(*words(spans, tmp_path / "alone", *more, "--accumulation=2")).status == 0
    ours, others = boundary_losses(tmp_path / "split"), boundary_losses(tmp_path / "alone")
    assert len(ours) == 6
    assert ours == pytest.approx(others, abs=2e-5)
