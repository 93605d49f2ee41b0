"""Memory of every possible stage."""

import numpy as np

from trainer.extensions.splitting.plan.intervals import Intervals, Whole
from trainer.extensions.splitting.plan.kinds import KINDS, StageKind
from trainer.extensions.splitting.plan.optimiser_costs import OptimiserCosts
from trainer.extensions.splitting.plan.plan import Memory

VALUE = 4
"""Bytes of a weight or a gradient."""


class StageMemory:
    """Bytes on a device of each stage, by kind of stage: arrays of Intervals.

    A device holds weights, moments, what each micro-batch under way keeps, and the tensors that a pipeline
    receives into, activations and gradients: PyTorch's has its own for each micro-batch of an update. On top
    comes the largest of four: the start of a backward pass in the heads or the highest layer, its end in the
    lowest layer or the embeddings, and the optimiser's step. A sharded stage holds its share of the weights
    and, gathered, those of embeddings and heads and of two layers, with their gradients at the end.
    """

    def __init__(
        self,
        intervals: Intervals,
        copies: int,
        optimiser: OptimiserCosts,
        in_buckets: bool,
        clips: bool = False,
    ) -> None:
        """in_buckets: the sums of gradients are there from the start, not from the first backward pass on.

        clips: each micro-batch's gradients are all there before they are added to the sums.
        """
        self._intervals = intervals
        self._in_buckets, self._clips = in_buckets, clips
        parameters = intervals.parameters()
        self._weights = {False: VALUE * parameters, True: VALUE * -(-parameters // copies)}
        self._moments = {
            False: optimiser.moments * parameters,
            True: optimiser.moments * -(-parameters // copies),
        }
        self._gathered = {False: np.zeros_like(parameters), True: _gathered(intervals)}
        self._step = {
            sharded: _step_working(intervals, optimiser, copies if sharded else 1)
            for sharded in (False, True)
        }
        self._received = intervals.handed_in() + intervals.handed_out()
        self._kept = {kind: intervals.ends("kept") + _kept(intervals, kind) for kind in KINDS}
        self._start = {kind: _start_working(intervals, kind) for kind in KINDS}
        self._end = _end_working(intervals)
        self._heads_kept = intervals.is_last * intervals.costs.heads.kept

    def peak(self, kind: StageKind, in_flight: int, micro_batches: int) -> Whole:
        """The most bytes, with so many micro-batches under way at once."""
        weights, moments, gradients, rest = self._parts(kind, in_flight, micro_batches)
        total: Whole = weights + moments + gradients + rest
        return total

    def peaks(self, in_flight: int, micro_batches: int) -> Whole:
        """The most bytes of each kind of KINDS."""
        return np.stack([self.peak(kind, in_flight, micro_batches) for kind in KINDS])

    def at(self, kind: StageKind, first: int, last: int, in_flight: int, micro_batches: int) -> Memory:
        """The bytes of one stage by purpose."""
        parts = self._parts(kind, in_flight, micro_batches)
        weights, moments, gradients, activations = (int(part[first, last]) for part in parts)
        return Memory(weights=weights, gradients=gradients, moments=moments, activations=activations)

    def _parts(
        self, kind: StageKind, in_flight: int, micro_batches: int
    ) -> tuple[Whole, Whole, Whole, Whole]:
        """Weights, moments, gradients and the rest at the moment when their sum is largest."""
        weights, kept = self._weights[kind.sharded], self._kept[kind]
        gradients = weights
        is_summing = self._in_buckets or micro_batches > in_flight
        gathered = self._gathered[kind.sharded]
        start = in_flight * kept + self._start[kind] + gathered
        apart = gradients * (self._clips and not kind.sharded and micro_batches > 1)
        end = np.maximum((in_flight - 1) * kept + self._end + apart, self._step[kind.sharded])
        end = end + 2 * gathered  # weights and gradients
        if is_summing:
            rest, there = np.maximum(start, end), gradients
        else:
            is_end = end + gradients > start
            rest, there = np.where(is_end, end, start), np.where(is_end, gradients, 0)
        return weights, self._moments[kind.sharded], there, rest + micro_batches * self._received


def _kept(intervals: Intervals, kind: StageKind) -> Whole:
    """Bytes that layers keep of a micro-batch. Sharded ones, gathered again in 16 bits, keep no casts."""
    if kind.recomputes:
        return intervals.total("handed")
    casts = intervals.total("cast") if kind.sharded else 0
    return np.asarray(intervals.total("kept") - casts)


def _start_working(intervals: Intervals, kind: StageKind) -> Whole:
    """The rest at the start of a backward pass: in the heads, or in a layer when the heads are done.

    Copies of whole weights in 16 bits stay until the end of the forward pass.
    """
    costs = intervals.costs
    layer = intervals.largest(lambda layer: layer.working + (layer.kept if kind.recomputes else 0))
    casts = intervals.total("cast") * (kind == StageKind(recomputes=True, sharded=False))
    after = layer + _waiting(intervals) - intervals.is_last * costs.heads.kept
    return np.asarray(np.maximum(np.maximum(intervals.is_last * costs.heads.working, after), casts))


def _end_working(intervals: Intervals) -> Whole:
    """The rest at the end of a backward pass: in the lowest layer, or in the embeddings."""
    embeddings = intervals.costs.embeddings
    kept = intervals.is_first * embeddings.kept
    layer = intervals.largest(lambda layer: layer.kept + layer.working)
    return kept + _waiting(intervals) + np.maximum(layer, intervals.is_first * embeddings.working)


def _waiting(intervals: Intervals) -> Whole:
    """The gradient of tied word embeddings, which waits for its second half in a stage with both ends."""
    return intervals.is_first * intervals.is_last * (VALUE * intervals.costs.heads.tied)


def _gathered(intervals: Intervals) -> Whole:
    """Whole weights on a device of a sharded stage: of both ends, and of two layers."""
    ends = intervals.parameters() - intervals.total("parameters")
    layer = intervals.largest(lambda layer: layer.parameters)
    return VALUE * (ends + 2 * layer)


def _step_working(intervals: Intervals, optimiser: OptimiserCosts, shards: int) -> Whole:
    """The bytes of the optimiser's step: of one chunk."""
    tied = np.maximum(intervals.is_first, intervals.is_last) * intervals.costs.heads.tied
    largest = np.maximum(intervals.largest(lambda layer: layer.parameters // 3), tied) // shards
    values = intervals.parameters() // shards
    working = np.vectorize(optimiser.working, otypes=[np.int64])
    return np.asarray(working(values, largest))
