"""Optimisers and schedule of MLPerf's reference and of the original BERT."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, make_polynomial_decay

OF_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
"""Parts of the names of weights without weight decay in programs derived from Google's."""


def make_mlperf_schedule(
    rate: float,
    steps: int,
    warmup: Warmup,
    *,
    start_warmup_step: int = 0,
    power: float = 1.0,
    steps_per_update: int = 1,
) -> Schedule:
    """Return a schedule that warms up, counted from start_warmup_step (which may be negative), then decays as
    if the decay had begun at step 0.

    steps_per_update: steps N that MLPerf's program counts per update. Update k, from 0, has the rate of the
    last of its steps, Nk + N - 1.
    """
    falling, rising = make_polynomial_decay(rate, steps, power), warmup.updates
    last = (steps_per_update - 1) / steps_per_update  # position of an update's last step, in updates

    def rate_at(step: int) -> float:
        risen = step + last - start_warmup_step
        return rate * risen / rising if rising and risen < rising else falling(step + last)

    return rate_at


MLPERF = ScheduleKind(formula=make_mlperf_schedule)

LAMB = Preset(decay_skips=OF_TENSORFLOW, trust="named", schedule="mlperf", clipping="per_micro_batch")

ADAMW_BERT = Preset(
    decay_skips=OF_TENSORFLOW, trust="none", debias=False, schedule="mlperf", clipping="per_micro_batch"
)
