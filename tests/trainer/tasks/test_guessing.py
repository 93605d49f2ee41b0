"""The guess of a classification: the most frequent label, or the mean score, of what is learned from."""

import json
import math

import numpy as np
import pytest

from trainer.tasks.classification.metrics import GuessBaseline
from trainer.tasks.classification.presets import TASKS


def test_the_guessed_label_is_the_most_frequent_one_of_the_training_set():
    guess = GuessBaseline.from_labels(TASKS["mrpc"], [1, 0, 1, 1])
    assert (guess.name, guess.description) == ('"1"', '"1" is the label of 75.0%')
    found = guess.compute_scores(np.array([1, 0, 0, 1]))  # 2 right of 4 found and of 2 wanted
    assert found == {"acc": 0.5, "f1": 2 / 3, "acc_and_f1": (0.5 + 2 / 3) / 2}


def test_its_loss_is_that_of_the_shares():
    guess = GuessBaseline.from_labels(TASKS["mrpc"], [1, 0, 1, 1])
    assert guess.compute_loss(np.array([1, 1, 0])) == pytest.approx(
        -(2 * math.log(4 / 6) + math.log(2 / 6)) / 3
    )


def test_the_guessed_score_is_the_mean_which_has_no_correlation():
    guess = GuessBaseline.from_labels(TASKS["sts-b"], [1.0, 2.0, 4.5])
    assert (guess.name, guess.description) == ("2.500", "the mean score is 2.500")
    assert guess.compute_scores(np.array([1.0, 3.0])) == {"pearson": 0.0, "spearmanr": 0.0, "corr": 0.0}
    assert guess.compute_loss(np.array([1.5, 3.5])) == 1.0


def test_a_guess_survives_json():
    for task, labels in (("mrpc", [0, 1]), ("sts-b", [0.5, 1.0])):
        guess = GuessBaseline.from_labels(TASKS[task], labels)
        again = GuessBaseline(task=TASKS[task], **json.loads(json.dumps(guess.as_json())))
        assert (again.description, again.compute_loss(np.array(labels))) == (
            guess.description,
            guess.compute_loss(np.array(labels)),
        )
