"""torch.compile, where it runs on any machine."""

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config as inductor

from tests.support.training_runs import Trainer, losses, words

NO_DROPOUT = ("--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0")


@pytest.fixture
def trainer(capsys) -> Trainer:
    torch._dynamo.reset()
    counters.clear()
    return Trainer(capsys)


@pytest.fixture
def without_inductor(monkeypatch) -> None:
    """Graphs are captured but run as they are: to make kernels of one takes half a minute."""
    compile_it = torch.nn.Module.compile
    monkeypatch.setattr(
        torch.nn.Module,
        "compile",
        lambda self, **given: compile_it(self, backend="eager", dynamic=given["dynamic"]),
    )


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
    assert counters["stats"]["unique_graphs"] == 2  # a graph for each budget
    assert counters["inductor"]
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.thorough
@pytest.mark.usefixtures("without_inductor")
def test_a_compiled_modernbert_learns_what_a_plain_one_does(trainer, block_set, tmp_path):
    run = ("--model-type=modernbert", "--local-attention=8", *NO_DROPOUT, "--num-hidden-layers=2")
    assert trainer(*words(block_set, tmp_path / "plain", *run, "--steps=3")).status == 0
    assert trainer(*words(block_set, tmp_path / "compiled", *run, "--steps=3", "--compile")).status == 0
    assert counters["stats"]["unique_graphs"]
    assert not counters["graph_break"]
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.thorough
@pytest.mark.usefixtures("without_inductor")
def test_training_and_evaluation_have_a_graph_for_each_budget(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--accumulation=2", "--num-hidden-layers=1", "--steps=4")
    run = (*run, f"--eval-data={training_set}", "--eval-examples=6")
    assert trainer(*words(training_set, tmp_path / "plain", *run)).status == 0
    assert trainer(*words(training_set, tmp_path / "compiled", *run, "--compile")).status == 0
    assert counters["stats"]["unique_graphs"] == 2 + 2  # both meet two of the budgets
    assert not counters["graph_break"]
    assert_same_losses(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.usefixtures("without_inductor")
@pytest.mark.thorough
def test_compile_only_compiles_and_leaves_nothing(trainer, training_set, tmp_path):
    run = (*NO_DROPOUT, "--num-hidden-layers=1", "--compile-only")
    outcome = trainer(*words(training_set, tmp_path / "run", *run))
    assert outcome.status == 0
    assert "compiled for cpu" in outcome.err
    assert counters["stats"]["unique_graphs"] == 3  # a graph for each usual budget
    assert not (tmp_path / "run").exists()
