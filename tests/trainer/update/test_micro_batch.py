"""The reduction over micro-batches."""

import pytest

from trainer.config.settings import Config
from trainer.update.loss_shares import compute_equal_divisor


@pytest.mark.parametrize(
    ("keys", "count", "workers", "divisor"),
    [
        ({}, 4, 1, 4),
        ({}, 4, 2, 4),
    ],
)
def test_the_usual_reduction_is_a_mean(keys, count, workers, divisor):
    assert compute_equal_divisor(Config.of(**keys), count, workers) == divisor
