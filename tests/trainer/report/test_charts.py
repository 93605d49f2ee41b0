"""Charts of what runs learn: each on its own scale, beside what a guess reaches."""

import csv

import pytest

from tests.support.recorded_runs import make_run
from trainer.logs.charts import (
    OPTIMISER,
    SPEED,
    find_training_baselines,
    make_charts,
    make_result_charts,
)
from trainer.logs.recorded_run import read_runs


def charts(*folders):
    return {chart.title: chart for chart in make_result_charts(read_runs([*map(str, folders)]))}


def lines(chart):
    return {line.name: (list(line.xs), list(line.ys), line.dashed) for line in chart.lines}


def test_each_loss_and_accuracy_has_a_chart_of_its_own(tmp_path):
    found = charts(make_run(tmp_path / "run"))
    assert list(found) == [
        "Loss: masked words",
        "Accuracy: masked words",
        "Loss: next sentence",
        "Accuracy: next sentence",
    ]
    assert all(chart.whole_x and chart.x_label == "update" for chart in found.values())


def test_the_guess_is_dashed_beside_training_and_evaluations(tmp_path):
    found = lines(charts(make_run(tmp_path / "run"))["Accuracy: next sentence"])
    assert found["training"] == ([*range(1, 9)], [0.75] * 8, False)
    assert found["evaluated"] == ([4, 8], [0.5, 0.5], False)
    assert found["guess without reading"] == ([1, 8], [0.625, 0.625], True)


def test_the_guess_of_masked_words_is_the_most_frequent_one(tmp_path):
    found = lines(charts(make_run(tmp_path / "run"))["Accuracy: masked words"])
    assert found["guess without reading"][1] == [0.125, 0.125]


def test_a_single_evaluation_has_a_marker(tmp_path):
    chart = charts(make_run(tmp_path / "run", range(1, 2), evaluated=(1,)))["Loss: masked words"]
    assert [(line.name, line.markers, list(line.xs)) for line in chart.lines[:2]] == [
        ("training", False, [1]),  # few points get markers anyhow
        ("evaluated", True, [1]),
    ]


def test_several_runs_lie_over_each_other_with_one_guess_where_it_is_the_same(tmp_path):
    folders = [make_run(tmp_path / name) for name in ("a", "b")]
    found = lines(charts(*folders)["Loss: next sentence"])
    assert list(found) == [
        "a, training",
        "a, evaluated",
        "b, training",
        "b, evaluated",
        "guess without reading",
    ]
    table = folders[1] / "evaluation.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("0.75", "0.5"), encoding="utf-8")
    found = lines(charts(*folders)["Loss: next sentence"])
    assert [name for name, (*_, dashed) in found.items() if dashed] == [
        "a, guess without reading",
        "b, guess without reading",
    ]


def test_the_phases_of_a_run_have_lines_and_guesses_of_their_own(tmp_path):
    make_run(tmp_path / "run")
    found = lines(
        charts(make_run(tmp_path / "run", range(1, 5), evaluated=(4,), phase=2))["Loss: masked words"]
    )
    assert found["phase 1, training"][0] == [*range(1, 9)]
    assert found["phase 2, training"][0] == [*range(9, 13)]
    assert found["guess without reading"][0] == [1, 12]


def test_without_evaluations_the_guess_is_counted_in_the_training_data(tmp_path, training_set):
    folder = make_run(tmp_path / "run", evaluated=(), train_data=str(training_set))
    find_training_baselines.cache_clear()
    drawn = charts(folder)
    assert find_training_baselines.cache_info().misses == 1  # for all charts
    guessed = find_training_baselines(str(training_set))
    guess = lines(drawn["Accuracy: next sentence"])["guess without reading"]
    assert guess[1] == [guessed["nsp_acc"]] * 2
    assert 0.5 < guessed["nsp_acc"] < 1
    assert guessed["mlm_loss"] > guessed["nsp_loss"] > 0


def test_without_evaluations_and_data_there_is_no_guess(tmp_path):
    folder = make_run(tmp_path / "run", evaluated=(), train_data=str(tmp_path / "gone"))
    assert not any(line.dashed for chart in charts(folder).values() for line in chart.lines)


def write_rows(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def test_scores_of_fine_tuning_have_charts_with_the_majority_class(tmp_path):
    write_rows(tmp_path / "training.csv", [{"step": 1, "label_loss": 0.5, "label_acc": 0.75}])
    scores = {"label_loss": 0.25, "label_accuracy": 0.5, "acc": 0.5, "f1": 0.75}
    guesses = {"guess_label_loss": 0.625, "guess_acc": 0.375, "guess_f1": 0.125}
    write_rows(tmp_path / "evaluation.csv", [{"step": 1, "loss": 0.25, **scores, **guesses}])
    found = charts(tmp_path)
    assert {title: lines(chart)["guess without reading"][1][0] for title, chart in found.items()} == {
        "Loss: label": 0.625,
        "Accuracy: label": 0.375,
        "Score: f1": 0.125,
    }


def test_speed_and_optimiser_have_units_and_leave_out_what_is_not_known(tmp_path):
    runs = read_runs([str(make_run(tmp_path / "run"))])
    titles = {chart.title: chart for chart in make_charts((*OPTIMISER, *SPEED), runs)}
    assert "Share of the device's peak" not in titles
    assert titles["Fill"].y_label == "tokens that are no padding (%)"
    assert list(titles["Fill"].lines[0].ys) == [80, 80]
    assert list(titles["Waiting for data"].lines[0].ys) == pytest.approx([10, 10])
    assert list(titles["Throughput"].lines[0].xs) == [7, 8]  # the first updates are not timed
