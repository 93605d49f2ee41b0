"""Every schedule at some steps, by fractions computed by hand, and at all steps; the warm-up."""

import hashlib
import math
from fractions import Fraction as F
from inspect import Parameter
from typing import Any

import pytest

from bertdata.errors import SettingsError
from trainer.config.schedules.form import Schedule, Warmup
from trainer.config.settings import Config, get_key_schemas
from trainer.plugins import find, list_names

# N = 1000 steps, W = 100 of warm-up, L = 1/1024 (exact in binary) unless stated.
L = F(1, 1024)


def schedule_of(name: str, *, workers: int = 1, **settings: Any) -> Schedule:
    return Config.of(lr_schedule=name, **settings).make_schedule(workers)


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
    table(
        "mlperf",
        # update k is step 4k + 3 of 4,000, with a warm-up of 400 steps
        {0: L * F(3, 400), 99: L * F(399, 400), 100: L * F(3597, 4000), 999: L / 4000},
        steps_per_update=4,
    ),
    # BertAdam: x = s / N, not (s + 1) / N; x / w, then (1 - x) / (1 - w)
    table("nvidia-bertadam", {0: 0, 1: L / 100, 100: L, 550: L / 2, 999: L / 900}, warmup=0.1),
    table("nvidia-bertadam", {0: L, 500: L / 2, 999: L / 1000}, warmup=0),
    table("mlperf", {0: L, 500: L / 4, 1000: 0, 2000: 0}, warmup=0, power=2.0),
    table("mlperf", {0: L, 4: L * F(996, 1000)}, warmup=0, start_warmup_step=10),
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
    # (1 - x) over 1/1000 at least, where warm-up ends within the last update
    table("nvidia-linear", {0: L / F(9995, 10), 998: L * F(9990, 9995), 999: 0}, warmup=0.9995),
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
        optimiser="adamw-bert",
    ),
    table("habana-tf", {95: 4 * L, 190: 8 * L * F(9, 10), 750: 4 * L}, warmup=190, workers=8),
    table("habana-tf", {500: L / 2}, warmup=1000, optimiser="adamw-bert"),
    # a trial run that ends within its warm-up
    table("habana-tf", {0: 0, 500: L / 4, 999: L * F(999, 2000)}, warmup=2000),
    table(
        "polynomial_decay",
        {0: 0, 50: L / 2, 99: L * F(99, 100), 100: L, 550: L / 2, 999: L / 900, 1000: 1e-7, 5000: 1e-7},
    ),
    table("polynomial_decay", {0: L, 500: L / 2}, warmup=0),
    table("polynomial_decay", {998: L * F(998, 999), 999: L, 1000: 1e-7}, warmup=999),
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
    schedule = schedule_of(name, base_learning_rate=float(L), steps=steps, warmup=warmup, **settings)
    for step, wanted in values.items():
        assert schedule(step) == pytest.approx(float(wanted), rel=1e-12, abs=1e-18), step


EXACT, POWERS = float.hex, "{:.12e}".format
"""Rates to the last bit; where the C library's powers are in them, to 13 digits."""


def frozen(name, form, digest, steps, warmup, rate, **more):
    settings = {"steps": steps, "warmup": warmup, "base_learning_rate": rate, **more}
    return pytest.param(name, settings, form, digest, id=f"{name} {warmup} of {steps} {more}"[:60])


# md5 of the rates of all updates, made by revision d9e9c4e: two modules rounded the warm-up there.
FROZEN = [
    frozen("mlperf", EXACT, "a4c76c00f1d6f01cd01a0330f65e3e1d", 600, 287, 0.00288293, start_warmup_step=-76),
    frozen("mlperf", EXACT, "b47c19c7ae010b45497ba59156a97085", 3000, 0.333333333, 0.0001),
    frozen("mlperf", POWERS, "85934d06a121c2c2ff2288036f3394d4", 1000, 10, 0.0001, power=0.5),
    frozen("nvidia-poly", POWERS, "d01cce199c5589c43acc17f8aea371c2", 7038, 0.2843, 0.006),
    frozen("nvidia-poly", POWERS, "abaecad73f3f10c8df4576abe5d53f40", 1563, 200, 0.004),
    frozen("nvidia-linear", EXACT, "f3567e618324f1e2c88de5962e180a02", 345, 0.1, 2e-05),
    frozen("nvidia-linear", EXACT, "94ffbc2dee7a459d731f99f27b590ef9", 1000, 333, 3e-05),
    frozen("habana-tf", POWERS, "298df1c2ddd2066f79523084a904994f", 7820, 2000, 0.00075),
    frozen(
        "habana-tf", EXACT, "0d16a659a355eed06004b2cb35684064", 1563, 0.128, 5e-05, optimiser="adamw-bert"
    ),
    frozen("polynomial_decay", EXACT, "2b8e194a3aec24e3694eeb1bdf0d56eb", 2142, 277, 0.002828),
    frozen("polynomial_decay", EXACT, "aebd4736c38338ee55eaacc6454b5012", 3000, 0.333333333, 0.001),
    frozen(
        "natural_exponential",
        POWERS,
        "9729b2eb172d2912a21334abc7867ba8",
        512,
        0.29,
        0.051,
        decay_rate=0.5,
        decay_steps=50,
    ),
    frozen(
        "custom",
        EXACT,
        "dcd77b346c1834f12f1b56812e36c1cf",
        300,
        0,
        0.001,
        lr_schedule_by_step={"0": 0.001, "100": 0.0005},
    ),
]


@pytest.mark.parametrize(("name", "settings", "form", "digest"), FROZEN)
def test_the_rates_of_all_updates_are_what_they_were(name, settings, form, digest):
    schedule = schedule_of(name, **settings)
    text = "\n".join(form(schedule(step)) for step in range(settings["steps"]))
    assert hashlib.md5(text.encode()).hexdigest() == digest


@pytest.mark.parametrize(
    ("warmup", "steps", "updates", "share"),
    [
        *((0, 100, 0, 0.0), (1, 100, 1, 0.01), (10, 100, 10, 0.1), (0.0, 9, 0, 0.0), (0.25, 10, 2, 0.25)),
        *((0.29, 100, 29, 0.29), (0.1, 30, 3, 0.1), (0.999, 100, 99, 0.999), (0.2843, 7038, 2000, 0.2843)),
        *((0.333333333, 3000, 1000, 0.333333333), (0.33333333, 3000, 999, 0.33333333)),
    ],
)
def test_a_warm_up_is_updates_or_a_share_rounded_down(warmup, steps, updates, share):
    assert Warmup.of(warmup, steps) == Warmup(updates, share)
    schedule = schedule_of("polynomial_decay", base_learning_rate=1.0, steps=steps, warmup=warmup)
    assert [schedule(step) for step in range(updates)] == [step / updates for step in range(updates)]
    assert schedule(updates) == 1.0


def test_nvidias_phases_start_and_jump_where_they_did():
    phase1 = schedule_of("nvidia-poly", base_learning_rate=6e-3, steps=7038, warmup=0.2843)
    # 0.2843 * 7038 = 2000.9034
    assert phase1(0) == pytest.approx(6e-3 / 2000.9034)
    assert phase1(1999) == pytest.approx(6e-3 * 2000 / 2000.9034)
    assert phase1(2000) == pytest.approx(6e-3 * math.sqrt(5037 / 7038))


def test_only_habanas_base_rate_is_multiplied_by_the_workers():
    rates = {
        name: Config.of(
            lr_schedule=name,
            base_learning_rate=0.5,
            decay_steps=9,
            decay_rate=0.5,
            lr_schedule_by_step={"0": 0.5},
        ).make_schedule(8)(0)
        for name in list_names("schedule")
    }
    assert rates.pop("habana-tf") == 4.0
    assert set(rates) == set(list_names("schedule")) - {"habana-tf"}
    assert max(rates.values()) <= 0.5


@pytest.mark.parametrize("warmup", [-1, 1.0, 1.5, -0.1, 100.0, True, "100", None, math.nan])
@pytest.mark.parametrize("epochs", [None, 1.0])
def test_wrong_warm_ups_are_refused(warmup, epochs):
    with pytest.raises(SettingsError, match="^warmup is .*, expected "):
        Config.of(steps=1000, warmup=warmup, num_train_epochs=epochs)


@pytest.mark.parametrize(
    ("warmup", "updates"), [(1000, 1000), (1001, 1001), (0.999999999, 1000)], ids=["end", "beyond", "rounded"]
)
@pytest.mark.parametrize(
    "name", sorted(set(list_names("schedule")) - {"habana-tf", "natural_exponential", "custom"})
)
def test_a_warm_up_that_does_not_end_is_refused(name, warmup, updates):
    message = rf"warmup is {updates} updates, expected fewer than steps \(1000\)"
    with pytest.raises(SettingsError, match=message):
        Config.of(lr_schedule=name, steps=1000, warmup=warmup)


def test_a_warm_up_is_compared_with_the_updates_of_the_epochs_once_they_are_counted():
    config = Config.of(steps=10, num_train_epochs=1.0, warmup=500)
    assert config.find_warmup(501) == Warmup(500, 500 / 501)
    with pytest.raises(SettingsError, match=r"expected fewer than steps \(500\)"):
        config.find_warmup(500)


@pytest.mark.parametrize("settings", [{"lr_schedule": "habana-tf"}, {"optimiser": "lamb-habana-tf"}], ids=str)
def test_habanas_trial_runs_may_end_within_their_warm_up(settings):
    rate = Config.of(steps=100, warmup=2000, base_learning_rate=2.0, **settings).make_schedule(1)
    assert [rate(step) for step in (0, 50, 99)] == pytest.approx([0.0, 0.05, 0.099])


def test_every_schedule_reads_keys_of_the_configuration():
    for kind in (find("schedule", name) for name in list_names("schedule")):
        assert set(kind.defaults) <= {*get_key_schemas(), "adam"}


@pytest.mark.parametrize(
    ("name", "needed", "others"),
    [
        ("natural_exponential", ["decay_steps", "decay_rate"], {"decay_rate": 0.5, "decay_steps": 5}),
        ("custom", ["lr_schedule_by_step"], {"lr_schedule_by_step": {"0": 0.1}}),
    ],
)
def test_keys_without_a_default_are_asked_for(name, needed, others):
    defaults = find("schedule", name).defaults
    assert [key for key, default in defaults.items() if default is Parameter.empty] == needed
    for missing in needed:
        with pytest.raises(SettingsError, match=f"lr_schedule {name} needs {missing}"):
            Config.of(lr_schedule=name, **{key: value for key, value in others.items() if key != missing})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr_schedule": "mlpref"}, "lr_schedule is 'mlpref', expected one of mlperf"),
        ({"decay_steps": 0}, "decay_steps is 0, expected 1 or more"),
        ({"lr_schedule_by_step": {"1": 0.1}}, "lr_schedule_by_step"),
        ({"lr_schedule_by_step": {}}, "lr_schedule_by_step"),
        ({"lr_schedule_by_step": {"-1": 1, "0": 1}}, "lr_schedule_by_step"),
        ({"lr_schedule_by_step": {"0": 1, "x": 1}}, "lr_schedule_by_step"),
        ({"lr_schedule_by_step": {"0": "1"}}, "lr_schedule_by_step"),
        ({"lr_schedule_by_step": [1]}, "lr_schedule_by_step"),
        ({"steps": 0}, "steps is 0, expected 1 or more"),
    ],
)
def test_wrong_names_and_settings_are_refused(settings, message):
    with pytest.raises(SettingsError) as caught:
        Config.of(**settings)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("rounding", "wanted"),
    # 405 pairs, 8 an update, 3 epochs: int(405 / 8 * 3) in Google's programs, 3 * ceil(405 / 8) in others
    [("up", 152), ("down", 151), ("each_up", 153)],
)
def test_updates_of_epochs_are_rounded_as_by_each_program(rounding, wanted):
    config = Config.of(num_train_epochs=3.0, epoch_rounding=rounding)
    assert config.schedule.updates_of(3.0, 405, 8) == wanted
