"""Optimisers and schedule of MLPerf's reference and of the original BERT."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, make_polynomial_decay

OF_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
"""Parts of names. In programs derived from Google's, weights with such names have no weight decay."""


def make_mlperf_schedule(
    rate: float,
    steps: int,
    warmup: Warmup,
    *,
    start_warmup_step: int = 0,
    power: float = 1.0,
    steps_per_update: int = 1,
) -> Schedule:
    """Return the schedule of MLPerf's reference: a linear warm-up, then a polynomial decay to 0.

    The rate may jump at the end of the warm-up, because the decay is computed from step 0.

    start_warmup_step: step at which the warm-up begins with a rate of 0. It may be negative.
    power: exponent of the decay. 1 is a linear decay.
    steps_per_update: number N of steps that MLPerf's program counts in an update. Update k, counted from 0,
    has the rate of its last step, which is step Nk + N - 1.
    """
    falling, rising = make_polynomial_decay(rate, steps, power), warmup.updates
    # where an update's last step lies in the update, as a fraction
    last = (steps_per_update - 1) / steps_per_update

    def rate_at(step: int) -> float:
        risen = step + last - start_warmup_step
        return rate * risen / rising if rising and risen < rising else falling(step + last)

    return rate_at


MLPERF = ScheduleKind(formula=make_mlperf_schedule)

LAMB = Preset(decay_skips=OF_TENSORFLOW, trust="named", schedule="mlperf", clipping="per_micro_batch")

ADAMW_BERT = Preset(
    decay_skips=OF_TENSORFLOW, trust="none", debias=False, schedule="mlperf", clipping="per_micro_batch"
)
