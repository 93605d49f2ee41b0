"""What the program says before it runs a command."""

from contextlib import suppress

import pytest

from bertdata.cli.common import slow_engine
from trainer.program import main

LINE = (
    "trainer: the native engine is not built here; running the slow Python engine. To build it in a source "
    "tree: pip install --editable ."
)


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only what is said is changed: modules that are imported now keep the kernels for later tests.
    monkeypatch.setattr(slow_engine, "available", lambda: False)


def says_it(capsys: pytest.CaptureFixture[str], *words: str) -> bool:
    """Return True if the command line prints the line about the slow engine."""
    with suppress(SystemExit):  # --help and unknown flags end the program
        main(list(words))
    return LINE in capsys.readouterr().err.splitlines()


@pytest.mark.usefixtures("without_kernels")
def test_without_kernels_a_command_that_reads_much_says_so_in_one_line(capsys) -> None:
    assert says_it(capsys, "pretrain", "--train-data", "nowhere", "--output-dir", "nowhere")
    assert says_it(capsys, "evaluate", "--eval-data", "nowhere")
    assert not says_it(capsys, "convert", "nowhere", "there")
    assert not says_it(capsys, "pretrain", "--help")


@pytest.mark.usefixtures("without_kernels")
def test_of_several_workers_one_says_so(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert says_it(capsys, "evaluate", "--eval-data", "nowhere") == (rank == "0")


def test_with_kernels_nothing_is_said(capsys) -> None:
    assert not says_it(capsys, "evaluate", "--eval-data", "nowhere")
