"""The columns of a run's speed: counted from real tokens, and the same however the work is divided."""

import csv
import re
from pathlib import Path

import pytest
import torch

from tests.support.training_runs import words
from trainer.data import loader
from trainer.devices.cpu import Cpu
from trainer.devices.peaks import find_peak
from trainer.update.step import OptimiserStep

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


def table(run: Path) -> list[dict[str, str]]:
    with (run / "training.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("more", "scale"),
    [((), 1), (("--precision=bf16",), 1), (("--precision=fp16", "--loss-scaling=1024"), 1024)],
)
def test_the_gradient_norm_is_that_of_all_gradients_before_clipping(
    trainer, training_set, tmp_path, monkeypatch, more, scale
):
    norms = list[float]()
    take = OptimiserStep.take

    def measured(self, gradients, rate, number):
        norms.append(float(torch.cat([gradient.flatten() for gradient in gradients]).norm()) / scale)
        take(self, gradients, rate, number)

    monkeypatch.setattr(OptimiserStep, "take", measured)
    run = words(training_set, tmp_path, "--steps=3", "--base-learning-rate=0.001", "--accumulation=2", *more)
    assert trainer(*run).status == 0
    found = [float(row["gradient_norm"]) for row in table(tmp_path)]
    assert found == pytest.approx(norms, rel=1e-4)
    assert len(set(found)) == 3


def test_the_norm_is_left_out_where_the_update_computes_none(trainer, training_set, tmp_path):
    assert trainer(*words(training_set, tmp_path, "--steps=2", "--warmup=0", "--clipping=none")).status == 0
    assert [row["gradient_norm"] for row in table(tmp_path)] == ["", ""]


def test_memory_and_share_of_the_peak_are_told_where_the_device_knows_them(
    trainer, training_set, tmp_path, monkeypatch
):
    monkeypatch.setattr(Cpu, "peak_memory", lambda self: 3 * 2**29)
    monkeypatch.setattr(Cpu, "find_peak", lambda self, description: find_peak(description))
    monkeypatch.setattr(Cpu, "describe", lambda self: "cuda:0: NVIDIA A100-SXM4-80GB, 79 GiB")
    outcome = trainer(*words(training_set, tmp_path, "--steps=8"))
    row = table(tmp_path)[-1]
    assert float(row["memory_gib"]) == 1.5
    assert float(row["peak_share"]) == pytest.approx(float(row["tflops"]) / 312)
    assert "% of peak" in outcome.err
    assert re.search("^success .*% of peak, 1.5 GiB$", outcome.err, re.MULTILINE)


def test_a_processor_tells_neither(trainer, training_set, tmp_path):
    outcome = trainer(*words(training_set, tmp_path, "--steps=8"))
    row = table(tmp_path)[-1]
    assert (row["memory_gib"], row["peak_share"]) == ("", "")
    assert float(row["tflops"]) > 0
    assert "of peak" not in outcome.err
    assert "GiB" not in outcome.err


def test_waiting_for_data_is_measured(trainer, training_set, tmp_path, monkeypatch):
    original = loader.Prefetcher.__next__

    def slow(self):
        item = original(self)
        self.waited += 1.0
        return item

    monkeypatch.setattr(loader.Prefetcher, "__next__", slow)
    assert trainer(*words(training_set, tmp_path, "--steps=3")).status == 0
    assert [float(row["data_wait"]) for row in table(tmp_path)][1:] == pytest.approx([1.0, 1.0], abs=0.05)
