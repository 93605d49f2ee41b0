"""Names of runs that a slip of the keyboard tells apart, and those that are two names."""

import os

import pytest

from trainer.run.near_names import find_near_run, is_typo_of

NEAR = ["run rnu", "out outs", "bert-base bert_base", "Large large", "pretrain pretrian", "phase-1 phase1"]
OTHER = ["run-1 run-2", "w0 w1", "lr1e-4 lr5e-4", "run-a run-b", "bert bert-large", "small large", "run run2"]


@pytest.mark.parametrize("names", NEAR)
def test_a_slip_is_near(names):
    assert is_typo_of(*names.split())
    assert is_typo_of(*names.split()[::-1])


@pytest.mark.parametrize("names", OTHER)
def test_other_numbers_letters_and_words_are_other_names(names):
    assert not is_typo_of(*names.split())


def test_the_run_beside_it_is_named_as_the_directory_was(tmp_path, monkeypatch):
    (tmp_path / "runs" / "large" / "checkpoints").mkdir(parents=True)
    (tmp_path / "runs" / "larges").mkdir()  # no run
    monkeypatch.chdir(tmp_path)
    assert find_near_run("runs/lagre") == "runs/large"
    assert find_near_run("runs/lagre/") == "runs/large"
    assert find_near_run(str(tmp_path / "runs" / "larg")) == str(tmp_path / "runs" / "large")
    assert find_near_run("runs/large") is None
    os.chdir("runs")
    assert find_near_run("lagre") == "large"
    assert find_near_run("nowhere/lagre") is None
