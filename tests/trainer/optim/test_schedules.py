"""Every schedule at some steps; the expected fractions were computed by hand."""

import math
from fractions import Fraction as F

import pytest

from bertdata.errors import SettingsError
from trainer.optim.schedules import make_schedule

# N = 1000 steps, W = 100 of warm-up, L = 1/1024 (exact in binary) unless stated.
L = F(1, 1024)


def table(name, values, *, steps=1000, warmup=100, **settings):
    return pytest.param(name, steps, warmup, settings, values, id=f"{name} {warmup} {settings}"[:60])


TABLES = [
    table(
        "mlperf",
        # joint: 99 is the last of the warm-up, 100 the first of the decay
        {0: 0, 1: L / 100, 99: L * F(99, 100), 100: L * F(9, 10), 500: L / 2, 999: L / 1000, 1000: 0},
    ),
    table(
        "mlperf",
        # s - (-76) < 100 up to step 23
        {0: L * F(76, 100), 23: L * F(99, 100), 24: L * F(976, 1000), 999: L / 1000},
        start_warmup_step=-76,
    ),
    table("mlperf", {10: 0, 60: L / 2, 110: L * F(89, 100)}, start_warmup_step=10),
    table("mlperf", {0: L, 500: L / 4, 1000: 0, 2000: 0}, warmup=0, power=2.0),
    table(
        "nvidia-poly",
        # x = (s + 1)/1000 < 1/4 up to step 248; at 249 x = 1/4 and the root is that of 3/4
        {
            0: L * F(4, 1000),
            248: L * F(249, 250),
            249: float(L) * math.sqrt(3) / 2,
            639: L * F(6, 10),
            998: float(L) * math.sqrt(0.001),
            999: 0,
            1000: 0,
        },
        warmup=0.25,
    ),
    table("nvidia-poly", {0: L / 250, 248: L * F(249, 250), 249: float(L) * math.sqrt(3) / 2}, warmup=250),
    table("nvidia-poly", {0: float(L) * math.sqrt(0.999), 839: L * F(4, 10)}, warmup=0),
    table(
        "nvidia-linear",
        # x = (s + 1)/1000 < 1/4 up to step 248; at 249 x = 1/4 and (1 - x)/(1 - w) = 1: no jump
        {0: L / 250, 124: L / 2, 248: L * F(249, 250), 249: L, 624: L / 2, 998: L / 750, 999: 0, 1000: 0},
        warmup=0.25,
    ),
    table("nvidia-linear", {0: L / 250, 249: L, 624: L / 2, 999: 0}, warmup=250),
    table("nvidia-linear", {0: L * F(999, 1000), 499: L / 2, 999: 0, 2000: 0}, warmup=0),
    table("nvidia-linear", {0: L / 1000, 998: L * F(999, 1000), 999: 0}, warmup=1000),
    table(
        "habana-tf",
        # a jump from 190/191 to the root of 1 - 190/1000 = 9/10 squared
        {0: 0, 95: L / 2, 189: L * F(189, 190), 190: L * F(9, 10), 750: L / 2, 1000: 0},
        warmup=190,
    ),
    table(
        "habana-tf",
        # 9/10 of the start L / (9/10): continuous
        {0: 0, 99: L * F(99, 100), 100: L, 550: L / 2, 1000: 0},
        adam=True,
    ),
    table("habana-tf", {95: 4 * L, 190: 8 * L * F(9, 10), 750: 4 * L}, warmup=190, workers=8),
    table("habana-tf", {500: L / 2}, warmup=1000, adam=True),
    table(
        "polynomial_decay",
        {0: 0, 50: L / 2, 99: L * F(99, 100), 100: L, 550: L / 2, 999: L / 900, 1000: 1e-7, 5000: 1e-7},
    ),
    table("polynomial_decay", {0: L, 500: L / 2}, warmup=0),
    table("polynomial_decay", {999: L * F(999, 1000), 1000: 1e-7}, warmup=1000),
    table(
        "natural_exponential",
        {
            0: 0,
            99: L * F(99, 100),
            100: L,
            149: L,
            150: float(L) * math.exp(-0.5),
            199: float(L) * math.exp(-0.5),
            200: float(L) * math.exp(-1),
            999: float(L) * math.exp(-8.5),
        },
        decay_rate=0.5,
        decay_steps=50,
    ),
    table(
        "custom",
        {0: 1e-3, 99: 1e-3, 100: 5e-4, 101: 5e-4, 1999: 5e-4, 2000: 1e-5, 10**6: 1e-5},
        warmup=0,
        lr_schedule_by_step={"2000": 1e-5, "0": 1e-3, "100": 5e-4},
    ),
]


@pytest.mark.parametrize(("name", "steps", "warmup", "settings", "values"), TABLES)
def test_schedules_have_their_tabled_values(name, steps, warmup, settings, values):
    schedule = make_schedule(name, learning_rate=float(L), steps=steps, warmup=warmup, **settings)
    for step, wanted in values.items():
        assert schedule(step) == pytest.approx(float(wanted), rel=1e-12, abs=1e-18), step


@pytest.mark.parametrize(
    ("share", "steps", "first"), [(0.29, 100, 29), (0.1, 30, 3), (0.25, 10, 2), (0.0, 9, 0)]
)
def test_a_share_of_warm_up_is_rounded_down(share, steps, first):
    schedule = make_schedule("polynomial_decay", learning_rate=1.0, steps=steps, warmup=share)
    assert schedule(first) == 1.0
    assert all(schedule(step) == step / first for step in range(first))


def test_nvidias_phases_start_and_jump_where_they_did():
    phase1 = make_schedule("nvidia-poly", learning_rate=6e-3, steps=7038, warmup=0.2843)
    # 0.2843 * 7038 = 2000.9034
    assert phase1(0) == pytest.approx(6e-3 / 2000.9034)
    assert phase1(1999) == pytest.approx(6e-3 * 2000 / 2000.9034)
    assert phase1(2000) == pytest.approx(6e-3 * math.sqrt(5037 / 7038))


@pytest.mark.parametrize("warmup", [-1, 1.0, 1.5, -0.1, 100.0, True, "100", None, math.nan])
@pytest.mark.parametrize("name", ["mlperf", "nvidia-poly", "nvidia-linear", "habana-tf", "polynomial_decay"])
def test_wrong_warm_ups_are_refused(name, warmup):
    with pytest.raises(SettingsError, match="warmup is .*, expected an integer from 0 to steps"):
        make_schedule(name, learning_rate=1.0, steps=1000, warmup=warmup)


@pytest.mark.parametrize("name", ["mlperf", "nvidia-poly", "polynomial_decay"])
def test_a_warm_up_beyond_the_end_is_refused(name):
    with pytest.raises(SettingsError, match="warmup is 1001, expected an integer from 0 to steps"):
        make_schedule(name, learning_rate=1.0, steps=1000, warmup=1001)


def test_habana_s_trial_runs_may_end_within_their_warm_up():
    rate = make_schedule("habana-tf", learning_rate=2.0, steps=100, warmup=2000)
    assert [rate(step) for step in (0, 50, 99)] == pytest.approx([0.0, 0.05, 0.099])


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("mlpref", {}, "schedule mlpref is not a known key; the nearest known is mlperf"),
        ("mlperf", {"pwoer": 2}, "setting pwoer is not a known key; the nearest known is power"),
        ("polynomial_decay", {"power": 2}, "schedule polynomial_decay: setting power is not a known key"),
        ("natural_exponential", {"decay_rate": 0.5}, "the setting decay_steps is missing"),
        (
            "natural_exponential",
            {"decay_rate": 0.5, "decay_steps": 0},
            "decay_steps is 0, expected an integer",
        ),
        ("custom", {}, "schedule custom: the setting lr_schedule_by_step is missing"),
        ("custom", {"lr_schedule_by_step": {"1": 0.1}}, 'the first step must be "0"'),
        ("custom", {"lr_schedule_by_step": {}}, 'the first step must be "0"'),
        ("custom", {"lr_schedule_by_step": {"-1": 1, "0": 1}}, 'the first step must be "0"'),
        ("custom", {"lr_schedule_by_step": {"0": 1, "x": 1}}, "expected numbers of steps with their rates"),
        ("custom", {"lr_schedule_by_step": [1]}, "expected numbers of steps with their rates"),
    ],
)
def test_wrong_names_and_settings_are_refused(name, settings, message):
    with pytest.raises(SettingsError) as caught:
        make_schedule(name, learning_rate=1.0, steps=10, **settings)
    assert message in str(caught.value)


def test_no_steps_are_refused():
    with pytest.raises(SettingsError, match="steps is 0, expected 1 or more"):
        make_schedule("mlperf", learning_rate=1.0, steps=0)
