"""What stands on top of a run's page: figures, the command line, and warnings."""

import csv
import json

import pytest

from bertdata.reports.page.blocks import CommandBlock
from tests.support.recorded_runs import make_run
from trainer.logs.charts import make_result_charts
from trainer.logs.recorded_run import read_runs
from trainer.report.cautions import compute_wilson_interval, find_cautions
from trainer.report.headlines import make_headlines
from trainer.report.sections import make_page
from trainer.run.command_line import find_command_line


def write_tables(folder, evaluated: dict[str, float], losses=(0.5,)) -> str:
    folder.mkdir()
    for name, rows in (
        ("training", [{"step": step, "label_loss": loss} for step, loss in enumerate(losses, 1)]),
        ("evaluation", [{"step": len(losses), **evaluated}]),
    ):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    return str(folder)


def test_results_are_in_words_next_to_their_guess_and_each_number_once(tmp_path):
    scores = {"loss": 0.25, "label_loss": 0.25, "label_accuracy": 0.75, "acc": 0.75, "f1": 0.5}
    guesses = {"guess_label_loss": 0.625, "guess_acc": 0.375, "guess_f1": 0.125}
    [run] = read_runs([write_tables(tmp_path / "run", {"examples": 60, **scores, **guesses})])
    assert [(one.label, one.value, one.note) for one in make_headlines(run).figures[:3]] == [
        ("accuracy of labels", "75.0%", "a guess reaches 37.5%, on 60 examples"),
        ("F1", "50.0%", "a guess reaches 12.5%, on 60 examples"),
        ("loss of labels", "0.250", "a guess reaches 0.625, on 60 examples"),
    ]


def test_scores_of_squad_are_per_cent_already(tmp_path):
    [run] = read_runs([write_tables(tmp_path / "run", {"exact_match": 80.5, "f1": 88.25})])
    assert [one.value for one in make_headlines(run).figures[:2]] == ["80.5%", "88.2%"]


def write_kept_best(folder, value: float, number: int) -> str:
    path = write_tables(folder, {"examples": 500, "acc": 0.75, "guess_acc": 0.5}, losses=(0.5, 0.4, 0.3))
    state = folder / "checkpoints" / "step-00000003" / "state.json"
    state.parent.mkdir(parents=True)
    best = {"metric": "acc", "value": value, "number": number, "evaluations_since": 1}
    state.write_text(json.dumps({"phase": 1, "config": {"keep_best": "acc"}, "best": best}), encoding="utf-8")
    return path


def test_the_best_result_of_a_run_that_keeps_it_is_a_figure_unless_it_is_the_last(tmp_path):
    [run] = read_runs([write_kept_best(tmp_path / "earlier", 0.875, 2)])
    assert [(one.label, one.value, one.note) for one in make_headlines(run).figures[:2]] == [
        ("accuracy of labels", "75.0%", "a guess reaches 50.0%, on 500 examples"),
        ("best accuracy of labels", "87.5%", "after update 2, the checkpoint that is used"),
    ]
    [run] = read_runs([write_kept_best(tmp_path / "last", 0.75, 3)])
    assert [one.label for one in make_headlines(run).figures] == ["accuracy of labels", "updates"]


def test_the_course_of_a_run_is_among_its_figures(tmp_path):
    [run] = read_runs([str(make_run(tmp_path / "run"))])
    figures = {one.label: (one.value, one.note) for one in make_headlines(run).figures}
    assert figures["updates"] == ("8 of 8", "success")
    assert figures["speed"] == ("6,400", "tokens per second, median")
    assert figures["time"][0] == "4 s"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["/x/trainer/__main__.py", "pretrain", "--train-data", "a b"],
            "python -m trainer pretrain --train-data 'a b'",
        ),
        # a worker of --dist has the words of the command that started it
        (["/x/trainer/by_path.py", "pretrain", "--dist"], "python -m trainer pretrain --dist"),
        (["/bin/bertdata-train", "pretrain", "--rows"], "bertdata-train pretrain --rows"),
        (["/x/ipykernel_launcher.py", "-f", "x.json"], None),
    ],
)
def test_the_command_line_is_known_if_a_shell_started_the_run(monkeypatch, words, expected):
    monkeypatch.setattr("sys.argv", words)
    assert find_command_line() == expected


def test_a_long_command_is_cut_before_its_flags_and_means_the_same(tmp_path):
    folder = make_run(tmp_path / "run")
    command = f"python -m trainer pretrain --train-data {'a' * 60} --eval-data 'x y' --rows"
    log = folder / "dllogger.json"
    text = log.read_text(encoding="utf-8")
    log.write_text(
        text.replace('"start_point":', f'"command": "{command}", "start_point":'), encoding="utf-8"
    )
    blocks = [block for section in make_page(read_runs([str(folder)])).sections for block in section.blocks]
    [block] = [one for one in blocks if isinstance(one, CommandBlock)]
    assert len(block.lines) > 1
    assert " ".join(line.strip(" \\") for line in block.lines) == command


def test_an_evaluation_of_few_examples_is_told_with_its_interval(tmp_path):
    found = {"label_loss": 1.0, "label_accuracy": 0.75}
    few = write_tables(tmp_path / "few", {"examples": 60, **found})
    many = write_tables(tmp_path / "many", {"examples": 4000, **found})
    [caution] = find_cautions(read_runs([few, many]))
    assert caution.startswith("few was evaluated on only 60 examples.")
    assert "63% to 84%" in caution
    assert find_cautions(read_runs([many])) == []


def test_the_interval_is_wilsons():
    """The values are those of Newcombe (1998, table I): 81 of 263, and 0 of 20."""
    assert compute_wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert compute_wilson_interval(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)


def test_runs_of_different_vocabularies_are_told(tmp_path):
    one, other = make_run(tmp_path / "one"), make_run(tmp_path / "other")
    assert not any("vocabular" in line for line in find_cautions(read_runs([str(one), str(other)])))
    [state] = other.glob("checkpoints/*/state.json")
    state.write_text(state.read_text().replace('"vocab_size": 4000', '"vocab_size": 5000'))
    caution = find_cautions(read_runs([str(one), str(other)]))[0]
    assert "different vocabularies (one: 4,000 tokens, other: 5,000 tokens)" in caution


def test_runs_of_one_vocabulary_are_not_told_apart_because_the_data_of_one_are_gone(tmp_path, training_set):
    one = make_run(tmp_path / "one", train_data=str(training_set))
    other = make_run(tmp_path / "other", train_data=str(tmp_path / "gone"))
    assert not any("vocabular" in line for line in find_cautions(read_runs([str(one), str(other)])))


def test_an_axis_does_not_zoom_into_noise(tmp_path):
    path = write_tables(tmp_path / "run", {"label_loss": 1.52, "label_accuracy": 0.9}, (1.5, 1.55, 1.51))
    charts = {chart.title: chart for chart in make_result_charts(read_runs([path]))}
    bottom, _ = charts["Loss: label"].y_range
    assert bottom == pytest.approx(0.6 * 1.55)
    assert charts["Loss: label"].lines[0].smoothed
