"""Labels of a classification run: their counts, the confusion matrix, and the scores of each."""

import numpy as np
import pytest

from bertdata.reports.charts.values import DataTable
from bertdata.reports.page.blocks import MatrixBlock, Prose
from tests.support.recorded_runs import LABELS, make_classified_run, make_run
from trainer.logs.recorded_run import read_runs
from trainer.report.classes import make_class_blocks, score_classes


def test_scores_of_classes_follow_their_definitions():
    scores = score_classes(np.array([[15, 0, 0], [2, 30, 0], [10, 3, 0]]))
    assert [one.examples for one in scores] == [15, 32, 13]
    assert scores[0][1:] == pytest.approx((15 / 27, 15 / 15, 2 * 15 / (27 + 15)))
    assert scores[1][1:] == pytest.approx((30 / 33, 30 / 32, 2 * 30 / (33 + 32)))
    assert scores[2][1:] == (None, 0.0, 0.0)


@pytest.fixture
def classified(tmp_path, small_vocabulary_file):
    """The directory of a run that was evaluated on five texts, two of which it got wrong."""
    return make_classified_run(tmp_path, small_vocabulary_file)


def blocks(folder):
    return list(make_class_blocks(*read_runs([str(folder)])))


def test_labels_have_their_counts_and_predictions_a_confusion_matrix(classified):
    labels, matrix, scores = blocks(classified)
    assert isinstance(labels, DataTable)
    assert [row[:3] for row in labels.rows] == [("bad", "0", 2), ("good", "1", 2), ("so, so", "2", 1)]
    assert isinstance(matrix, MatrixBlock)
    assert matrix.labels == tuple(LABELS)
    assert matrix.counts == ((2, 0, 0), (1, 1, 0), (0, 1, 0))
    assert scores.rows[1] == ("good", 2, 50.0, 50.0, 50.0)
    name, examples, *means = scores.rows[3]
    assert (name, examples) == ("mean over the labels", 5)
    assert means == pytest.approx([100 * (2 / 3 + 1 / 2 + 0) / 3, 100 * (1 + 1 / 2 + 0) / 3, 100 * 1.3 / 3])


def test_predictions_of_another_evaluation_make_no_matrix(classified):
    path = classified / "predictions.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("1\tbad", "1\tgood"), encoding="utf-8")
    _, told = blocks(classified)
    assert isinstance(told, Prose)
    assert "predictions.tsv is not of the last evaluation" in told.paragraphs[0]
    path.write_text("index\tprediction\n0\tgood\n", encoding="utf-8")
    assert isinstance(blocks(classified)[1], Prose)


def test_without_data_only_the_names_of_the_labels_are_left(classified):
    for path in (classified.parent / "features").iterdir():
        if path.is_file():
            path.unlink()
    [labels] = blocks(classified)
    assert list(labels.rows) == [("bad", "0"), ("good", "1"), ("so, so", "2")]
    assert "no longer exist" in labels.note


def test_a_run_of_another_task_has_no_labels(tmp_path):
    assert blocks(make_run(tmp_path / "run")) == []
