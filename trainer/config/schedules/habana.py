"""Optimiser and schedule of Habana's TensorFlow program."""

from trainer.config.schedules.form import (
    Preset,
    Schedule,
    ScheduleKind,
    Warmup,
    add_warmup,
    make_polynomial_decay,
)
from trainer.config.schedules.mlperf import OF_TENSORFLOW


def make_habana_schedule(rate: float, steps: int, warmup: Warmup, *, adam: bool = False) -> Schedule:
    """Return the schedule of Habana's TensorFlow program: a linear warm-up, then a decay to 0.

    With LAMB, the rate falls with the square root of the remaining steps. It jumps at the end of the warm-up,
    because the decay is computed from step 0. With Adam, the decay is linear and does not jump. If training
    is shorter than the warm-up, it ends during the warm-up.
    """
    start = rate / (1 - warmup.updates / steps) if adam and warmup.updates < steps else rate
    return add_warmup(rate, warmup.updates, make_polynomial_decay(start, steps, 1.0 if adam else 0.5))


HABANA_TF = ScheduleKind(formula=make_habana_schedule, may_end_in_warmup=True, rate_of_one_worker=True)

LAMB = Preset(decay_skips=OF_TENSORFLOW, schedule="habana-tf", clipping="per_micro_batch_divided")
