"""The bar in a notebook, with a stand-in for the notebook's display."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import bertdata
from bertdata.io import notebook
from bertdata.steps.progress import StepProgress, choose_progress, ignore_progress
from trainer.config.settings import Config
from trainer.functions.progress import ResultLogger
from trainer.logs.choice import make_loggers
from trainer.logs.notebook_bar import NotebookProgress
from trainer.tasks.pretraining import Pretraining

ROWS = [{"text": "The mill is old."}] * 3


class ZMQInteractiveShell:
    """Stand-in for the shell in the kernel of a notebook, which is recognised by its name."""


class Handle:
    """A part of the cell's output, which keeps what is drawn."""

    def __init__(self, content: dict[str, str]) -> None:
        self.drawn = [content]

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.drawn.append(content)

    @property
    def text(self) -> str:
        """What is drawn now, as text."""
        return self.drawn[-1]["text/plain"]


@pytest.fixture
def handles(monkeypatch: pytest.MonkeyPatch) -> list[Handle]:
    """A notebook, and the parts of its output."""
    made: list[Handle] = []

    def display(content: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert (raw, display_id) == (True, True)
        made.append(Handle(content))
        return made[-1]

    ipython: Any = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    monkeypatch.setattr(notebook, "_LEAST_SECONDS", 0.0)
    return made


def test_a_step_shows_a_bar_in_a_notebook(handles, tmp_path, capsys):
    bertdata.segment(ROWS, tmp_path / "parts", sentences="none", workers=1)
    (bar,) = handles
    size = len(b'{"text": "The mill is old."}\n') * 3
    assert bar.text == f"100% segmenting: {size} of {size} bytes"
    assert '<progress max="1" value="1.0000"></progress> segmenting' in bar.drawn[-1]["text/html"]
    assert capsys.readouterr() == ("", "")


def test_warnings_are_lines_below_the_bar_and_are_escaped(handles):
    show = choose_progress(None)
    show(StepProgress(stage="reading", done=1, total=4, warnings=("<b> is no word",)))
    show(StepProgress(stage="reading", done=2, total=4))
    assert handles[0].text == "50% reading: 2 of 4 bytes\nwarning: <b> is no word"
    assert "<div>warning: &lt;b&gt; is no word</div>" in handles[0].drawn[-1]["text/html"]


def test_false_and_a_function_show_no_bar(handles):
    assert choose_progress(False) is ignore_progress
    assert choose_progress(print) is print
    assert handles == []


def test_a_program_that_is_no_notebook_has_no_bar(monkeypatch):
    assert choose_progress(None) is ignore_progress
    terminal = SimpleNamespace(get_ipython=lambda: None)
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert choose_progress(None) is ignore_progress


def test_a_training_shows_its_newest_row_and_its_evaluations(handles):
    shown = NotebookProgress(Pretraining.columns, steps=20)
    shown.row({"step": 5, "loss": 1.25, "mlm_accuracy": 0.5, "learning_rate": 1e-3}, 0.0)
    shown.evaluation({"step": 5, "examples": 7}, "masked_lm_accuracy 0.5", 0.0)
    assert handles[0].text == (
        "25% step 5/20  loss 1.2500  mlm accuracy 0.5000  lr 1.00e-03\n"
        "step 5: evaluated 7 examples: masked_lm_accuracy 0.5"
    )


def test_a_function_takes_the_place_of_the_bar_of_a_training(handles, tmp_path):
    config = Config.of(output_dir=str(tmp_path / "run"), no_logs=True)
    for quiet, kinds in ((False, [NotebookProgress, ResultLogger]), (True, [ResultLogger])):
        logger = ResultLogger(None, replaces_terminal=quiet)
        assert [type(one) for one in make_loggers(config, Pretraining.columns, 0.0, None, [logger])] == kinds
    assert len(handles) == 1
