"""Rates of devices that plans are made with."""

import pytest

from trainer.devices.peaks import find_peak
from trainer.splitting.plan.rates import SHEETS


@pytest.mark.parametrize("name", ["a100", "h100", "h200", "gaudi2"])
def test_peaks_are_those_that_plans_are_made_with(name):
    assert find_peak(f"device: {name.upper()}") == SHEETS[name].half
