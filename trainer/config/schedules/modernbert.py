"""Updates of ModernBERT's program, and of torch-optimi, which its optimiser is from."""

import math
from collections.abc import Callable

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, warmed_up

_FALLS: dict[str, Callable[[float], float]] = {
    "1-sqrt": lambda part: 1 - math.sqrt(part),
    "linear": lambda part: 1 - part,
    "cosine": lambda part: (1 + math.cos(math.pi * part)) / 2,
}


def trapezoidal(
    rate: float,
    steps: int,
    warmup: Warmup,
    *,
    lr_decay: int | float = 0,
    lr_decay_shape: str = "1-sqrt",
    lr_end_share: float = 0.0,
) -> Schedule:
    """Linear warm-up, the full rate, then a fall over the last lr_decay updates (WSD).

    After a part f of the fall the rate is e + (1 - e) s(f) of the full one, e being lr_end_share and s one of
    1 - sqrt(f), 1 - f and half of 1 + cos(pi f). Updates before the fall do not depend on where it begins.
    """
    falling, fall = Warmup.of(lr_decay, steps).updates, _FALLS[lr_decay_shape]

    def rate_at(step: int) -> float:
        if (behind := step - (steps - falling)) <= 0 or not falling:
            return rate
        return rate * (lr_end_share + (1 - lr_end_share) * fall(min(1.0, behind / falling)))

    return warmed_up(rate, warmup.updates, rate_at)


TRAPEZOIDAL = ScheduleKind(formula=trapezoidal)

STABLE_ADAMW = Preset(kind="stableadamw", betas=(0.9, 0.99), trust="none", schedule="trapezoidal")

STABLE_ADAMW_MODERNBERT = Preset(
    kind="stableadamw",
    betas=(0.9, 0.98),
    weight_decay=1e-5,
    decay_skips=("bias", "norm", "Norm"),  # the weights of one dimension
    decays_by_share=True,
    trust="none",
    schedule="trapezoidal",
)
