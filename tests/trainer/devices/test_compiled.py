"""torch.compile, where it runs on any machine."""

from collections.abc import Iterator

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config as inductor

from tests.support.compiling import capturing, count_graphs
from tests.support.training_runs import Trainer, losses, words

PARTS = 3
"""Graphs of a BERT: embeddings, layers, heads with the loss."""
NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


@pytest.fixture
def trainer(capsys) -> Trainer:
    torch._dynamo.reset()
    counters.clear()
    return Trainer(capsys)


@pytest.fixture
def without_inductor() -> Iterator[None]:
    with capturing():
        yield


def assert_same_losses(one, other):
    for plain, compiled in zip(losses(one), losses(other), strict=True):
        assert compiled == pytest.approx(plain, abs=1e-4)


@pytest.mark.thorough
def test_losses_of_a_compiled_run_are_those_of_a_plain_run(trainer, training_set, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes that import torch to compile
    run = (*NO_DROPOUT, "--accumulation=2", "--num-hidden-layers=1", "--steps=4")
    assert trainer(*words(training_set, tmp_path / "plain", *run)).status == 0
    with inductor.patch(compile_threads=1):
        compiled = trainer(*words(training_set, tmp_path / "compiled", *run, "--compile"))
    assert compiled.status == 0
    assert ", compiled" in compiled.err
    assert counters["stats"]["unique_graphs"] == 2 * PARTS  # graphs for each budget
    assert counters["inductor"]
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.thorough
@pytest.mark.usefixtures("without_inductor")
def test_a_compiled_modernbert_learns_what_a_plain_one_does(trainer, block_set, tmp_path):
    run = ("--model-type=modernbert", "--local-attention=8", *NO_DROPOUT, "--num-hidden-layers=2")
    assert trainer(*words(block_set, tmp_path / "plain", *run, "--steps=3")).status == 0
    assert trainer(*words(block_set, tmp_path / "compiled", *run, "--steps=3", "--compile")).status == 0
    assert count_graphs()
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.thorough
@pytest.mark.usefixtures("without_inductor")
def test_training_and_evaluation_have_graphs_for_each_budget(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--accumulation=2", "--num-hidden-layers=1", "--steps=4")
    run = (*run, f"--eval-data={training_set}", "--eval-examples=6")
    assert trainer(*words(training_set, tmp_path / "plain", *run)).status == 0
    assert trainer(*words(training_set, tmp_path / "compiled", *run, "--compile")).status == 0
    assert count_graphs() == (2 + 2) * PARTS  # both meet two of the budgets
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.usefixtures("without_inductor")
@pytest.mark.thorough
def test_compile_only_compiles_and_leaves_nothing(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--num-hidden-layers=1", "--compile-only")
    outcome = trainer(*words(training_set, tmp_path / "run", *run))
    assert outcome.status == 0
    assert "compiled for cpu" in outcome.err
    assert count_graphs() == 3 * PARTS  # graphs for each usual budget
    assert not (tmp_path / "run").exists()
