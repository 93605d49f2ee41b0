"""Times of every possible stage."""

from collections.abc import Mapping

import numpy as np

from trainer.extensions.splitting.plan.intervals import RECOMPUTES, SHARDED, Intervals, Real
from trainer.extensions.splitting.plan.memory import VALUE
from trainer.extensions.splitting.plan.rates import ShardingRate


def stage_times(
    intervals: Intervals, copies: int, bandwidth: float, sharding: ShardingRate, step: float
) -> Mapping[str, Real]:
    """Seconds of each kind of stage by their names in StagePlan, (kinds, L + 1, L + 1), as in Intervals.

    bandwidth: bytes a second between devices; sharding: of sharded copies. step: seconds of the optimiser's
    step for one value. Copies send and receive 2 (n - 1) / n of their gradients in an all-reduce; a sharded
    stage gathers its weights for each pass, layers in the type of their products, and scatters the
    gradients, (n - 1) / n of each, without overlap.
    """
    values = intervals.parameters()
    moved = VALUE * values * (copies - 1) / copies
    gathered = moved - intervals.total("cast") * (copies - 1) / copies
    forward = intervals.total("forward") + intervals.ends("forward")
    backward = intervals.total("backward") + intervals.ends("backward")
    is_one_end = intervals.is_first != intervals.is_last
    tied = is_one_end * (VALUE * intervals.costs.heads.tied / bandwidth)
    times = {
        "forward": forward + SHARDED * (gathered / sharding.forward),
        "backward": backward
        + RECOMPUTES * intervals.total("recompute")
        + SHARDED * ((gathered + moved) / sharding.backward),
        "transfer": 2 * intervals.handed_out() / bandwidth,
        "all_reduce": np.where(SHARDED, tied / copies, tied + 2 * moved / bandwidth),
        "step": np.where(SHARDED, step * values / copies, step * values),
    }
    return dict(zip(times, np.broadcast_arrays(*times.values()), strict=True))
