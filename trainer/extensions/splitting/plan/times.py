"""Times of every possible stage."""

import numpy as np

from trainer.extensions.splitting.plan.intervals import Intervals, Real
from trainer.extensions.splitting.plan.kinds import KINDS, StageKind
from trainer.extensions.splitting.plan.memory import VALUE
from trainer.extensions.splitting.plan.rates import ShardingRate


class StageTimes:
    """Seconds of each stage, by kind of stage, as arrays of Intervals (see plan.StagePlan).

    bandwidth: bytes a second between devices; sharding: of sharded copies. step: seconds of the optimiser's
    step for one value. Copies send and receive 2 (n - 1) / n of their gradients in an all-reduce; a sharded
    stage gathers its weights for each pass, layers in the type of their products, and scatters the
    gradients, (n - 1) / n of each, without overlap.
    """

    def __init__(
        self, intervals: Intervals, copies: int, bandwidth: float, sharding: ShardingRate, step: float
    ) -> None:
        self._copies = copies
        values = intervals.parameters()
        moved = VALUE * values * (copies - 1) / copies
        gathered = moved - intervals.total("cast") * (copies - 1) / copies
        self._all_reduce = 2 * moved / bandwidth
        self._gather = gathered / sharding.forward
        self._gather_and_scatter = (gathered + moved) / sharding.backward
        ends = {name: _of_ends(intervals, name) for name in ("forward", "backward")}
        self._recompute = intervals.seconds("recompute")
        self._forward = intervals.seconds("forward") + ends["forward"]
        self._backward = intervals.seconds("backward") + ends["backward"]
        self.transfer: Real = 2 * intervals.handed_out() / bandwidth
        self._step = step * values
        is_one_end = intervals.is_first != intervals.is_last
        self._tied = is_one_end * (VALUE * intervals.costs.heads.tied / bandwidth)

    def forward(self, kind: StageKind) -> Real:
        return self._forward + self._gather if kind.sharded else self._forward

    def backward(self, kind: StageKind) -> Real:
        backward = self._backward + self._recompute if kind.recomputes else self._backward
        return backward + self._gather_and_scatter if kind.sharded else backward

    def all_reduce(self, kind: StageKind) -> Real:
        if kind.sharded:
            return np.asarray(self._tied / self._copies)
        return np.asarray(self._tied + self._all_reduce)

    def step(self, kind: StageKind) -> Real:
        return np.asarray(self._step / self._copies if kind.sharded else self._step)

    def busy(self) -> Real:
        """The time that a micro-batch keeps the stage busy, of each kind of KINDS."""
        return np.stack([self.forward(kind) + self.backward(kind) + self.transfer for kind in KINDS])

    def end(self) -> Real:
        """The time after the last micro-batch, of each kind of KINDS."""
        return np.stack([self.all_reduce(kind) + self.step(kind) for kind in KINDS])


def _of_ends(intervals: Intervals, name: str) -> Real:
    """A time of the embeddings where they are, plus that of the heads."""
    costs = intervals.costs
    first: float = getattr(costs.embeddings, name)
    last: float = getattr(costs.heads, name)
    return intervals.is_first * first + intervals.is_last * last
