"""Schedules of NVIDIA's fine-tuning programs, run_squad.py and run_glue.py."""

from trainer.config.schedules.form import Schedule, ScheduleKind, Warmup


def make_nvidia_linear_schedule(rate: float, steps: int, warmup: Warmup) -> Schedule:
    """Return a schedule with a linear warm-up, then a linear decay from the full rate to 0 at the last step.

    The progress x = (step + 1) / steps counts the current step as done. Let w be the warm-up's share of all
    steps. Then the result is rate * x / w for x < w, and rate * (1 - x) / (1 - w) afterwards.
    """
    fraction = warmup.fraction
    falling = max(1 - fraction, 1 / steps)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * (progress / fraction if progress < fraction else max(0.0, 1 - progress) / falling)

    return rate_at


def make_bertadam_schedule(rate: float, steps: int, warmup: Warmup) -> Schedule:
    """Return the schedule of the optimiser BertAdam, which NVIDIA's programs use in fp32.

    It is ``make_nvidia_linear_schedule``, but each update has the rate of the update before it.
    """
    after = make_nvidia_linear_schedule(rate, steps, warmup)
    return lambda step: after(step - 1)


NVIDIA_LINEAR = ScheduleKind(formula=make_nvidia_linear_schedule)
NVIDIA_BERTADAM = ScheduleKind(formula=make_bertadam_schedule)
