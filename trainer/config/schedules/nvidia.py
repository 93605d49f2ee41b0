"""Optimisers and schedule of NVIDIA's pre-training."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, make_polynomial_decay

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")


def make_nvidia_schedule(rate: float, steps: int, warmup: Warmup, *, power: float = 0.5) -> Schedule:
    """Return NVIDIA's schedule. Progress includes the current step, and the rate jumps after warm-up."""
    fraction = warmup.fraction
    after = make_polynomial_decay(rate, steps, power)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * progress / fraction if progress < fraction else after(step + 1)

    return rate_at


NVIDIA_POLY = ScheduleKind(formula=make_nvidia_schedule)

LAMB = Preset(decay_skips=_NO_DECAY, trust="decayed", schedule="nvidia-poly", clipping="per_update")

NVLAMB = Preset(decay_skips=_NO_DECAY, schedule="nvidia-poly", clipping="per_update")
