"""Learning-rate schedules by name: functions from the step, counted from 0, to a learning rate."""

import math
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from bertdata.config.value_check import check_names
from bertdata.errors import SettingsError

Schedule = Callable[[int], float]
_LEAST = 1e-7


def make_schedule(
    name: str, *, learning_rate: float, steps: int, warmup: int | float = 0, **settings: Any
) -> Schedule:
    """The schedule of that name over steps; warmup: steps if an integer, a share of them below 1.

    What else may be set: see the functions below.
    """
    check_names([name], SCHEDULES, "schedule ")
    if steps < 1:
        raise SettingsError(f"schedule {name}: steps is {steps}, expected 1 or more")
    make = SCHEDULES[name]
    try:
        signature(make).bind(learning_rate, steps, warmup, **settings)
    except TypeError as error:
        raise SettingsError(f"schedule {name}: {error}") from None
    return make(learning_rate, steps, warmup, **settings)


def warmup_steps(warmup: int | float, steps: int) -> int:
    """Steps of warm-up: an integer itself, 0 <= x < 1 that share of all steps, rounded down."""
    if type(warmup) is int and 0 <= warmup <= steps:
        return warmup
    if type(warmup) is float and 0 <= warmup < 1:
        # 0.29 * 100 is a little below 29.
        return math.floor(warmup * steps + 1e-6)
    raise SettingsError(
        f"warmup is {warmup!r}, expected an integer from 0 to steps ({steps}) or a share from 0 to below 1"
    )


def mlperf(
    rate: float, steps: int, warmup: int | float, *, start_warmup_step: int = 0, power: float = 1.0
) -> Schedule:
    """Warm-up counted from start_warmup_step, which may be negative; decay as if there were none."""
    rising = warmup_steps(warmup, steps)
    return _warmed_up(rate, rising, _decay(rate, steps, power), start_warmup_step)


def nvidia_poly(rate: float, steps: int, warmup: int | float, *, power: float = 0.5) -> Schedule:
    """Progress counts the step under way as done; the rate jumps where warm-up ends."""
    rising = warmup_steps(warmup, steps)
    share = rising / steps if type(warmup) is int else warmup
    after = _decay(rate, steps, power)
    return lambda step: rate * ((step + 1) / steps) / share if (step + 1) / steps < share else after(step + 1)


def habana_tf(
    rate: float, steps: int, warmup: int | float, *, adam: bool = False, workers: int = 1
) -> Schedule:
    """The rate is per worker. With LAMB a square root, and a jump; with Adam a straight line, and none."""
    rising = warmup_steps(warmup, steps)
    rate *= workers
    start = rate / (1 - rising / steps) if adam and rising < steps else rate
    return _warmed_up(rate, rising, _decay(start, steps, 1.0 if adam else 0.5))


def polynomial_decay(rate: float, steps: int, warmup: int | float) -> Schedule:
    """A straight line up to the rate, and one down to 1e-7."""
    rising = warmup_steps(warmup, steps)
    falling = max(1, steps - rising)
    return _warmed_up(rate, rising, lambda step: max(_LEAST, rate * (steps - step) / falling))


def natural_exponential(
    rate: float, steps: int, warmup: int | float, *, decay_rate: float, decay_steps: int
) -> Schedule:
    """Falls in stairs of decay_steps, each exp(-decay_rate) of the one before."""
    rising = warmup_steps(warmup, steps)
    if type(decay_steps) is not int or decay_steps < 1:
        raise SettingsError(f"decay_steps is {decay_steps!r}, expected an integer of 1 or more")

    def stairs(step: int) -> float:
        return rate * math.exp(-decay_rate * ((step - rising) // decay_steps))

    return _warmed_up(rate, rising, stairs)


def custom(
    rate: float, steps: int, warmup: int | float, *, lr_schedule_by_step: Mapping[str, float]
) -> Schedule:
    """A table from the step, as text, from which a rate holds to that rate; nothing else counts."""
    try:
        table = sorted((int(step), float(value)) for step, value in lr_schedule_by_step.items())
    except (ValueError, TypeError, AttributeError):
        raise SettingsError(
            f"lr_schedule_by_step is {lr_schedule_by_step!r}, expected numbers of steps with their rates"
        ) from None
    if not table or table[0][0] != 0:
        raise SettingsError('lr_schedule_by_step: the first step must be "0", and is not')
    return lambda step: max((since, value) for since, value in table if since <= step)[1]


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "mlperf": mlperf,
    "nvidia-poly": nvidia_poly,
    "habana-tf": habana_tf,
    "polynomial_decay": polynomial_decay,
    "natural_exponential": natural_exponential,
    "custom": custom,
}


def _warmed_up(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """A straight line from 0 at step ``start`` up to the rate, ``rising`` steps later, and what follows."""
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def _decay(rate: float, steps: int, power: float) -> Schedule:
    """From the rate at step 0 to 0 at the last."""
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
