"""Learning-rate schedules by name: functions from the update, counted from 0, to a learning rate."""

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
    """The schedule of that name over ``steps``.

    warmup: a number of steps if an integer, else a share of all steps, below 1. Further settings are the
    arguments of the functions below.
    """
    check_names([name], SCHEDULES, "schedule ")
    if steps < 1:
        raise SettingsError(f"schedule {name}: steps is {steps}, expected 1 or more")
    make = SCHEDULES[name]
    known = [each for each in signature(make).parameters.values() if each.kind == each.KEYWORD_ONLY]
    check_names(settings, [each.name for each in known], f"schedule {name}: setting ")
    for each in known:
        if each.default is each.empty and each.name not in settings:
            raise SettingsError(f"schedule {name}: the setting {each.name} is missing")
    return make(learning_rate, steps, warmup, **settings)


def warmup_steps(warmup: int | float, steps: int) -> int:
    """The warm-up in steps; a share of all steps (0 <= x < 1) is rounded down."""
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
    """Warm-up counted from start_warmup_step, which may be negative; the decay ignores the warm-up."""
    rising = warmup_steps(warmup, steps)
    return _warmed_up(rate, rising, _decay(rate, steps, power), start_warmup_step)


def nvidia_poly(rate: float, steps: int, warmup: int | float, *, power: float = 0.5) -> Schedule:
    """NVIDIA's schedule: progress includes the current step, and the rate jumps where warm-up ends."""
    rising = warmup_steps(warmup, steps)
    share = rising / steps if type(warmup) is int else warmup
    after = _decay(rate, steps, power)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * progress / share if progress < share else after(step + 1)

    return rate_at


def nvidia_linear(rate: float, steps: int, warmup: int | float) -> Schedule:
    """NVIDIA's fine-tuning: linear to 0 at the last step, from the full rate where warm-up ends.

    Progress x = (step + 1) / steps includes the current step: rate * x / w below the share w of warm-up,
    then rate * (1 - x) / (1 - w).
    """
    rising = warmup_steps(warmup, steps)
    share = rising / steps if type(warmup) is int else warmup
    falling = max(1 - share, 1 / steps)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * (progress / share if progress < share else max(0.0, 1 - progress) / falling)

    return rate_at


def habana_tf(
    rate: float, steps: int, warmup: int | float, *, adam: bool = False, workers: int = 1
) -> Schedule:
    """Habana's schedule, with the rate of one worker.

    With LAMB the decay is a square root and the rate jumps after warm-up; with Adam it is linear, without
    a jump. A warm-up of more updates than steps is cut off by the end.
    """
    rising = warmup if type(warmup) is int and warmup > steps else warmup_steps(warmup, steps)
    rate *= workers
    start = rate / (1 - rising / steps) if adam and rising < steps else rate
    return _warmed_up(rate, rising, _decay(start, steps, 1.0 if adam else 0.5))


def polynomial_decay(rate: float, steps: int, warmup: int | float) -> Schedule:
    """Linear warm-up to the rate, then linear decay to 1e-7."""
    rising = warmup_steps(warmup, steps)
    falling = max(1, steps - rising)
    return _warmed_up(rate, rising, lambda step: max(_LEAST, rate * (steps - step) / falling))


def natural_exponential(
    rate: float, steps: int, warmup: int | float, *, decay_rate: float, decay_steps: int
) -> Schedule:
    """Decay in stairs: every decay_steps the rate is multiplied by exp(-decay_rate)."""
    rising = warmup_steps(warmup, steps)
    if type(decay_steps) is not int or decay_steps < 1:
        raise SettingsError(f"decay_steps is {decay_steps!r}, expected an integer of 1 or more")

    def stairs(step: int) -> float:
        return rate * math.exp(-decay_rate * ((step - rising) // decay_steps))

    return _warmed_up(rate, rising, stairs)


def custom(
    rate: float, steps: int, warmup: int | float, *, lr_schedule_by_step: Mapping[str, float]
) -> Schedule:
    """Rates from a table {first step, as text: rate}; the other settings are ignored."""
    try:
        table = sorted((int(step), float(value)) for step, value in lr_schedule_by_step.items())
    except (ValueError, TypeError, AttributeError):
        raise SettingsError(
            f"lr_schedule_by_step is {lr_schedule_by_step!r}, expected numbers of steps with their rates"
        ) from None
    if not table or table[0][0] != 0:
        raise SettingsError('lr_schedule_by_step: the first step must be "0"')
    return lambda step: max((since, value) for since, value in table if since <= step)[1]


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "mlperf": mlperf,
    "nvidia-poly": nvidia_poly,
    "nvidia-linear": nvidia_linear,
    "habana-tf": habana_tf,
    "polynomial_decay": polynomial_decay,
    "natural_exponential": natural_exponential,
    "custom": custom,
}


def _warmed_up(rate: float, rising: int, after: Schedule, start: int = 0) -> Schedule:
    """Linear warm-up from 0 at step ``start`` to the rate after ``rising`` steps, then ``after``."""
    return lambda step: rate * (step - start) / rising if step - start < rising else after(step)


def _decay(rate: float, steps: int, power: float) -> Schedule:
    """Polynomial decay from the rate at step 0 to 0 at the last step."""
    return lambda step: rate * math.pow(max(0.0, 1 - step / steps), power)
