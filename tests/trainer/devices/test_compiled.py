"""torch.compile, where it runs on any machine."""

import pytest
import torch
from torch._dynamo.utils import counters

from tests.support.training_runs import Trainer, losses, words

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


@pytest.fixture
def trainer(capsys, monkeypatch) -> Trainer:
    monkeypatch.setattr("trainer.curves.draw_curves", lambda folder: [])
    torch._dynamo.reset()
    counters.clear()
    return Trainer(capsys)


@pytest.mark.slow
def test_a_compiled_run_is_one_graph_and_its_losses_are_those_of_a_plain_run(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--accumulation=2", "--num-hidden-layers=1", "--steps=4")
    assert trainer(*words(training_set, tmp_path / "plain", *run)).status == 0
    evaluated = (f"--eval-data={training_set}", "--eval-examples=6")
    compiled = trainer(*words(training_set, tmp_path / "compiled", *run, "--compile", *evaluated))
    assert compiled.status == 0
    assert ", compiled" in compiled.err
    assert counters["stats"]["unique_graphs"] == 2  # to train, and to evaluate
    assert not counters["graph_break"]
    for plain, other in zip(losses(tmp_path / "plain"), losses(tmp_path / "compiled"), strict=True):
        assert other == pytest.approx(plain, abs=1e-4)


@pytest.mark.slow
def test_compile_only_compiles_and_leaves_nothing(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--num-hidden-layers=1", "--compile-only")
    outcome = trainer(*words(training_set, tmp_path / "run", *run))
    assert outcome.status == 0
    assert "compiled for cpu" in outcome.err
    assert counters["stats"]["unique_graphs"] == 1
    assert not (tmp_path / "run").exists()
