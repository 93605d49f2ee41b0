"""The columns of a split run's speed: those of one worker."""

import csv
from pathlib import Path

import pytest

from tests.support.training_runs import start_workers, words

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


def table(run: Path) -> list[dict[str, str]]:
    with (run / "training.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.thorough
def test_two_workers_and_two_stages_count_the_tokens_of_one(trainer, training_set, tmp_path):
    """Tokens of a sequence do not depend on time: the stages of a copy must not both count them."""
    more = ("--steps=8", "--warmup=2", *NO_DROPOUT)
    assert trainer(*words(training_set, tmp_path / "alone", *more, "--accumulation=2")).status == 0
    divided = {"replicated": (), "pipelined": ("--bandwidth=10",)}
    for strategy, flags in divided.items():
        run = words(training_set, tmp_path / strategy, *more, f"--strategy={strategy}", *flags)
        outcome = start_workers("torchrun", 2, *run)
        assert outcome.status == 0, outcome.err
    alone, *others = (table(tmp_path / name) for name in ("alone", *divided))
    for rows in others:
        for ours, wanted in zip(rows, alone, strict=True):
            assert float(ours["gradient_norm"]) == pytest.approx(float(wanted["gradient_norm"]), rel=1e-3)
        for ours, wanted in zip(rows[6:], alone[6:], strict=True):
            assert tokens_of_a_sequence(ours) == pytest.approx(tokens_of_a_sequence(wanted))
            halves = [float(row["tflops"]) / float(row["tokens_per_second"]) for row in (ours, wanted)]
            assert 2 * halves[0] == pytest.approx(halves[1])  # each of two devices does half


def tokens_of_a_sequence(row: dict[str, str]) -> float:
    return float(row["tokens_per_second"]) / float(row["samples_per_sec"])
