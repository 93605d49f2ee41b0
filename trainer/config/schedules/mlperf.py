"""Updates of MLPerf's reference, and of the original BERT."""

from trainer.config.schedules.form import Preset, Schedule, ScheduleKind, Warmup, decay, warmed_up

OF_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
"""Parts of the names of weights that do not decay in programs after Google's."""


def mlperf(
    rate: float, steps: int, warmup: Warmup, *, start_warmup_step: int = 0, power: float = 1.0
) -> Schedule:
    """Warm-up counted from start_warmup_step, which may be negative. The decay ignores the warm-up."""
    return warmed_up(rate, warmup.updates, decay(rate, steps, power), start_warmup_step)


MLPERF = ScheduleKind(formula=mlperf)

LAMB = Preset(decay_skips=OF_TENSORFLOW, trust="named", schedule="mlperf", clipping="per_micro_batch")

ADAMW_BERT = Preset(
    decay_skips=OF_TENSORFLOW, trust="none", debias=False, schedule="mlperf", clipping="per_micro_batch"
)
