"""Memory of every possible stage."""

from collections.abc import Mapping

import numpy as np

from trainer.extensions.splitting.plan.costs import OptimiserCosts
from trainer.extensions.splitting.plan.intervals import RECOMPUTES, SHARDED, Intervals, Whole
from trainer.update.optimiser import CHUNK

VALUE = 4
"""Bytes of a weight or a gradient."""


class StageMemory:
    """Bytes on a device of each kind of stage, (kinds, L + 1, L + 1), as in Intervals.

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
        self._in_buckets, self._clips = in_buckets, clips
        parameters = intervals.parameters()
        held = np.where(SHARDED, -(-parameters // copies), parameters)
        self._weights, self._moments = VALUE * held, optimiser.moments * held
        self._gathered = SHARDED * _gathered(intervals)
        self._received = intervals.handed_in() + intervals.handed_out()
        self._kept = intervals.ends("kept") + _kept(intervals)
        self._start, self._end = _start_working(intervals), _end_working(intervals)
        self._step = _step_working(intervals, optimiser, np.where(SHARDED, copies, 1))

    def peaks(self, in_flight: int, micro_batches: int) -> Whole:
        """The most bytes, with so many micro-batches under way at once."""
        return np.asarray(sum(self.parts(in_flight, micro_batches).values()))

    def parts(self, in_flight: int, micro_batches: int) -> Mapping[str, Whole]:
        """The bytes at the moment when they are most, by their names in Memory."""
        gradients = self._weights
        start = in_flight * self._kept + self._start + self._gathered
        apart = gradients * (~SHARDED & (self._clips and micro_batches > 1))
        end = np.maximum((in_flight - 1) * self._kept + self._end + apart, self._step)
        end = end + 2 * self._gathered  # weights and gradients
        is_summing = self._in_buckets or micro_batches > in_flight
        is_end = end + gradients * (not is_summing) > start
        return {
            "weights": self._weights,
            "gradients": np.where(is_end | is_summing, gradients, 0),
            "moments": self._moments,
            "activations": np.where(is_end, end, start) + micro_batches * self._received,
        }


def _kept(intervals: Intervals) -> Whole:
    """Bytes that layers keep of a micro-batch. Sharded ones, gathered again in 16 bits, keep no casts."""
    kept = intervals.total("kept") - SHARDED * intervals.total("cast")
    return np.where(RECOMPUTES, intervals.total("handed"), kept)


def _start_working(intervals: Intervals) -> Whole:
    """The rest at the start of a backward pass: in the heads, or in a layer when the heads are done.

    Copies of whole weights in 16 bits stay until the end of the forward pass.
    """
    heads = intervals.costs.heads
    layer = np.where(
        RECOMPUTES,
        intervals.largest(lambda layer: layer.working + layer.kept),
        intervals.largest(lambda layer: layer.working),
    )
    casts = intervals.total("cast") * (RECOMPUTES & ~SHARDED)
    after = layer + _waiting(intervals) - intervals.is_last * heads.kept
    return np.asarray(np.maximum(np.maximum(intervals.is_last * heads.working, after), casts))


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
    return np.asarray(VALUE * (ends + 2 * layer))


def _step_working(intervals: Intervals, optimiser: OptimiserCosts, shards: Whole) -> Whole:
    """The bytes of the optimiser's step where it makes its change apart: of a chunk, at least one tensor."""
    tied = np.maximum(intervals.is_first, intervals.is_last) * intervals.costs.heads.tied
    largest = np.maximum(intervals.largest(lambda layer: layer.parameters // 3), tied) // shards
    chunk = np.minimum(intervals.parameters() // shards, CHUNK + largest)
    return np.asarray(VALUE * chunk * optimiser.has_change)
