"""Optimisers and schedule of NVIDIA's pre-training."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, make_polynomial_decay

_NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")


def make_nvidia_schedule(rate: float, steps: int, warmup: Warmup, *, power: float = 0.5) -> Schedule:
    """Return the schedule of NVIDIA's pre-training: a linear warm-up, then a polynomial decay to 0.

    The current step counts as done. The rate jumps at the end of the warm-up, because the decay is computed
    from step 0.

    power: exponent of the decay. 1 is a linear decay.
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
