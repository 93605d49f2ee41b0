"""Defaults that give way to keys that the user has set."""

import pytest

from bertdata.errors import SettingsError
from trainer.config.flags import make_config
from trainer.config.sections.update import ScalingSection


def read_bounds(*words: str) -> tuple[float, float, float]:
    """Return the lower bound, the initial value and the upper bound of the loss scale."""
    scaling: ScalingSection = make_config(list(words)).scaling
    return scaling.min_loss_scale, scaling.init_loss_scale, scaling.max_loss_scale


@pytest.mark.parametrize(
    ("words", "bounds"),
    [
        ([], (1, 2**16, 2**24)),
        (["--max-loss-scale=100"], (1, 100, 100)),
        (["--max-loss-scale=0.5"], (0.5, 0.5, 0.5)),
        (["--min-loss-scale=100000"], (100_000, 100_000, 2**24)),
        (["--min-loss-scale=33554432"], (2**25, 2**25, 2**25)),
        (["--init-loss-scale=33554432"], (1, 2**25, 2**25)),
        (["--init-loss-scale=0.25"], (0.25, 0.25, 2**24)),
        (["--min-loss-scale=2", "--max-loss-scale=4"], (2, 4, 4)),
    ],
)
def test_bounds_of_the_loss_scale_that_nobody_gave_make_room_for_the_given_ones(words, bounds):
    assert read_bounds(*words) == bounds


def test_a_number_of_micro_batches_moves_the_bound_that_nobody_gave():
    assert make_config(["--min-micro-batches=64"]).split.max_micro_batches == 64
    assert make_config(["--max-micro-batches=4"]).split.min_micro_batches == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--init-loss-scale=65536 --max-loss-scale=100", "init_loss_scale is 65536, expected min_loss_scale"),
        ("--init-loss-scale=2 --min-loss-scale=4", "init_loss_scale is 2, expected min_loss_scale"),
        (
            "--min-loss-scale=4 --max-loss-scale=2",
            r"is 4, expected at most max_loss_scale \(2\)",
        ),
        ("--min-micro-batches=64 --max-micro-batches=32", "_micro_batches is .*expected"),
    ],
)
def test_given_values_that_contradict_each_other_are_refused_by_their_names(line, told):
    with pytest.raises(SettingsError, match=told):
        make_config(line.split())
