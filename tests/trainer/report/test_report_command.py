"""The command report of the trainer: its page, the page's name, errors."""

import re

import pytest

from tests.support.plans import make_plan
from tests.support.recorded_runs import make_run
from trainer.__main__ import main
from trainer.logs.recorded_run import shorten_names
from trainer.splitting.plan.plan import write_plan


def page(*words):
    assert main(["report", *map(str, words)]) == 0
    return (words[0] / "report.html").read_text(encoding="utf-8")


def test_the_page_is_in_the_directory_of_the_run_and_is_told(tmp_path, capsys):
    folder = make_run(tmp_path / "run")
    text = page(folder)
    assert capsys.readouterr().out == f"wrote {folder / 'report.html'}\n"
    assert "<title>Run: run</title>" in text
    assert re.findall("<h2 id=.*>(.*)</h2>", text) == [
        "Read with care",  # 100 examples are few
        "Results",
        "What was trained",
        "Loss and accuracy",
        "Evaluations",
        "Optimiser",
        "Speed",
        "Settings",
    ]
    assert len(text) < 3_000_000


def test_the_page_tells_what_was_trained_on_what(tmp_path, training_set):
    text = page(make_run(tmp_path / "run", train_data=str(training_set)))
    for words in ("2 layers of 128, 2 heads", "cpu: made up", "8 of 8: success", "488", "bertdata 0"):
        assert words in text


def test_several_runs_are_on_one_page_with_their_different_settings(tmp_path, monkeypatch, capsys):
    folders = [
        make_run(tmp_path / name / "run", base_learning_rate=rate) for name, rate in (("a", 0.5), ("b", 0.25))
    ]
    monkeypatch.chdir(tmp_path)
    assert main(["report", *map(str, folders)]) == 0
    assert capsys.readouterr().out == "wrote report.html\n"
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>Runs: a/run, b/run</title>" in text
    assert "--base-learning-rate" in text


def test_names_are_as_short_as_they_differ():
    assert shorten_names(["x/a", "x/b/"]) == ["a", "b"]
    assert shorten_names(["x/a", "y/a"]) == ["x/a", "y/a"]
    assert shorten_names(["a", "a"]) == ["a (1)", "a (2)"]


def test_an_aborted_run_and_numbers_that_are_not_finite_stand_on_top(tmp_path):
    folder = make_run(tmp_path / "run", status="aborted")
    with (folder / "training.csv").open("a", encoding="utf-8") as file:
        file.write("9,9,0,0.009,nan" + "," * 14 + "\n")
    text = page(folder)
    faults = text[text.index('id="faults"') : text.index("What was trained</h2>")]
    assert "ended as aborted after update 9" in faults
    assert "1 number is not finite, first the loss of masked words of update 9" in faults


@pytest.mark.thorough
def test_the_plan_of_a_split_is_drawn_with_its_stages(tmp_path):
    folder = make_run(tmp_path / "run", strategy="pipelined", stages=4)
    assert "divided by pipelined, but its plan was not kept" in page(folder)
    write_plan(str(folder / "plan.json"), make_plan())
    text = page(folder)
    assert "Plan of run: pipelined" in text
    assert "One update: 4 stages x 2 copies" in text


def test_a_run_without_evaluations_or_checkpoint_has_a_page(tmp_path):
    folder = make_run(tmp_path / "run", evaluated=())
    (state,) = folder.glob("checkpoints/*/state.json")
    state.unlink()
    text = page(folder)
    assert "Evaluations</h2>" not in text
    assert "Settings</h2>" not in text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["{place}"], "holds no training.csv"),
        (["{place}/none"], "none: no such directory"),
        (["{place}", "--output", "x.pdf"], "x.pdf: expected a name that ends in .html"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, words, found):
    assert main(["report", *(word.format(place=tmp_path) for word in words)]) in (1, 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert line.startswith("trainer: error: ")
    assert found in line
