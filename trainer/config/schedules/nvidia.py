"""Optimisers and schedule of NVIDIA's pre-training."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, make_polynomial_decay

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")


def make_nvidia_schedule(rate: float, steps: int, warmup: Warmup, *, power: float = 0.5) -> Schedule:
    """Return NVIDIA's schedule: linear warm-up, then a decay to 0 by a power of what remains. The current
    step counts as done. The rate jumps after the warm-up, because the decay is computed from step 0.
    """
    fraction = warmup.fraction
    after = make_polynomial_decay(rate, steps, power)

    def rate_at(step: int) -> float:
        progress = (step + 1) / steps
        return rate * progress / fraction if progress < fraction else after(step + 1)

    return rate_at


NVIDIA_POLY = ScheduleKind(formula=make_nvidia_schedule)

LAMB = Preset(decay_skips=_NO_DECAY, trust="decayed", schedule="nvidia-poly", clipping="per_update")

NVLAMB = Preset(decay_skips=_NO_DECAY, schedule="nvidia-poly", clipping="per_update")
