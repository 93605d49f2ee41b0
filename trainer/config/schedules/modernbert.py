"""Optimisers and schedule of ModernBERT's program. Its optimiser comes from the package torch-optimi."""

import math
from collections.abc import Callable

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, add_warmup

_FALLS: dict[str, Callable[[float], float]] = {
    "1-sqrt": lambda part: 1 - math.sqrt(part),
    "linear": lambda part: 1 - part,
    "cosine": lambda part: (1 + math.cos(math.pi * part)) / 2,
}


def make_trapezoidal_schedule(
    rate: float,
    steps: int,
    warmup: Warmup,
    *,
    lr_decay: int | float = 0,
    lr_decay_shape: str = "1-sqrt",
    lr_end_share: float = 0.0,
) -> Schedule:
    """Return a trapezoidal schedule (warmup-stable-decay): a linear warm-up, a constant rate, then a fall.

    The fall takes the last ``lr_decay`` updates. After a fraction f of the fall the rate is ``rate * (e + (1
    - e) * s(f))``. Here e is lr_end_share, and s(f) is 1 - sqrt(f), 1 - f or (1 + cos(pi f)) / 2, as
    lr_decay_shape says. The rate before the fall does not depend on where it
    begins, so that a run can be continued with more steps.
    """
    falling, fall = Warmup.of(lr_decay, steps).updates, _FALLS[lr_decay_shape]

    def rate_at(step: int) -> float:
        if (behind := step - (steps - falling)) <= 0 or not falling:
            return rate
        return rate * (lr_end_share + (1 - lr_end_share) * fall(min(1.0, behind / falling)))

    return add_warmup(rate, warmup.updates, rate_at)


TRAPEZOIDAL = ScheduleKind(formula=make_trapezoidal_schedule)

STABLE_ADAMW = Preset(kind="stableadamw", betas=(0.9, 0.99), trust="none", schedule="trapezoidal")

STABLE_ADAMW_MODERNBERT = Preset(
    kind="stableadamw",
    betas=(0.9, 0.98),
    weight_decay=1e-5,
    decay_skips=("bias", "norm", "Norm"),  # these match the one-dimensional weights
    decays_by_share=True,
    trust="none",
    schedule="trapezoidal",
)
