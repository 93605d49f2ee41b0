"""Updates of NVIDIA's programs."""

from trainer.config.schedule import Schedule, ScheduleKind, Warmup, decay
from trainer.config.update import Preset

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")


def nvidia_poly(rate: float, steps: int, warmup: Warmup, *, power: float = 0.5) -> Schedule:
    """NVIDIA's schedule: progress includes the current step, and the rate jumps where warm-up ends."""
    fraction = warmup.fraction
    after = decay(rate, steps, power)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * progress / fraction if progress < fraction else after(step + 1)

    return rate_at


def nvidia_linear(rate: float, steps: int, warmup: Warmup) -> Schedule:
    """NVIDIA's fine-tuning: linear to 0 at the last step, from the full rate where warm-up ends.

    Progress x = (step + 1) / steps includes the current step: rate * x / w below the fraction w of warm-up,
    then rate * (1 - x) / (1 - w).
    """
    fraction = warmup.fraction
    falling = max(1 - fraction, 1 / steps)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * (progress / fraction if progress < fraction else max(0.0, 1 - progress) / falling)

    return rate_at


NVIDIA_POLY, NVIDIA_LINEAR = ScheduleKind(formula=nvidia_poly), ScheduleKind(formula=nvidia_linear)

LAMB = Preset(decay_skips=_NO_DECAY, trust="decayed", schedule="nvidia-poly", clipping="per_update")

NVLAMB = Preset(decay_skips=_NO_DECAY, schedule="nvidia-poly", clipping="per_update")
