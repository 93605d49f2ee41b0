"""Times and memory of every possible stage: each kind of stage, of every run of consecutive layers."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.splitting.plan.costs import ModelCosts, OptimiserCosts, PartCosts
from trainer.splitting.plan.rates import ShardingRate
from trainer.update.optimiser import CHUNK

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

RECOMPUTES = np.array([False, True, False, True])[:, None, None]
SHARDED = np.array([False, False, True, True])[:, None, None]
"""The kinds of stages, (kinds, 1, 1); of two that are equally fast the first is taken."""

VALUE = 4
"""Bytes of a weight or a gradient."""


class Intervals:
    """The layers first to last - 1 as places [first, last] of (L + 1, L + 1) arrays. Other places are unused.

    is_first, is_last: 1 where a stage of these layers has the embeddings, or the heads.
    """

    def __init__(self, costs: ModelCosts) -> None:
        self.costs = costs
        size = len(costs.layers) + 1
        self.is_first = np.zeros((size, size), dtype=np.int64)
        self.is_first[0] = 1
        self.is_last = np.zeros((size, size), dtype=np.int64)
        self.is_last[:, -1] = 1

    def total(self, name: str) -> NDArray[Any]:
        """The sum of one of the layers' costs."""
        sums = np.cumsum([0, *(getattr(layer, name) for layer in self.costs.layers)])
        return np.asarray(sums[None, :] - sums[:, None])

    def ends(self, name: str) -> NDArray[Any]:
        """One of the embeddings' costs where they are, plus the heads'."""
        costs = self.costs
        return np.asarray(
            self.is_first * getattr(costs.embeddings, name) + self.is_last * getattr(costs.heads, name)
        )

    def largest(self, value: Callable[[PartCosts], int]) -> Whole:
        """The maximum over the layers."""
        values = np.array([value(layer) for layer in self.costs.layers], dtype=np.int64)
        result = np.zeros(self.is_first.shape, dtype=np.int64)
        for first in range(len(values)):
            result[first, first + 1 :] = np.maximum.accumulate(values[first:])
        return result

    def handed(self) -> tuple[Whole, Whole]:
        """Bytes that the stage before hands over, and bytes that the stage hands over to the next one."""
        handed = np.array([0, *(layer.handed for layer in self.costs.layers)], dtype=np.int64)
        return handed[:, None] * (1 - self.is_first), handed[None, :] * (1 - self.is_last)

    def parameters(self) -> Whole:
        """Values of the stage's weights. A last stage that is not the first has its own word embeddings."""
        own = self.is_last * (1 - self.is_first) * self.costs.heads.tied
        return np.asarray(self.total("parameters") + self.ends("parameters") + own)


def stage_times(
    intervals: Intervals, copies: int, bandwidth: float, sharding: ShardingRate
) -> Mapping[str, Real]:
    """Seconds of each kind of stage by their names in StagePlan, (kinds, L + 1, L + 1), as in Intervals.

    bandwidth: bytes a second between devices; sharding: of sharded copies. Copies send and receive
    2 (n - 1) / n of their gradients in an all-reduce; a sharded stage gathers its weights for each pass,
    layers in the type of their products, and scatters the gradients, (n - 1) / n of each, without overlap.
    """
    values, step = intervals.parameters(), intervals.costs.step
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
        "transfer": 2 * intervals.handed()[1] / bandwidth,
        "all_reduce": np.where(SHARDED, tied / copies, tied + 2 * moved / bandwidth),
        "step": np.where(SHARDED, step * values / copies, step * values),
    }
    return dict(zip(times, np.broadcast_arrays(*times.values()), strict=True))


class StageMemory:
    """Bytes on a device of each kind of stage, (kinds, L + 1, L + 1), as in Intervals.

    A device holds weights, moments, what each micro-batch under way keeps, and the tensors that a pipeline
    receives into, activations and gradients: PyTorch's has its own for each micro-batch of an update. On top
    comes the largest of four: the start of a backward pass in the heads or the highest layer, its end in the
    lowest layer or the embeddings, and the optimiser's step. A sharded stage holds its share of the weights
    and, gathered, those of embeddings and heads and of two layers, with their gradients at the end.
    """

    def __init__(
        self, intervals: Intervals, copies: int, optimiser: OptimiserCosts, in_buckets: bool, clips: bool
    ) -> None:
        """in_buckets: the sums of gradients are there from the start, not from the first backward pass on.

        clips: each micro-batch's gradients are all there before they are added to the sums.
        """
        self._in_buckets, self._clips = in_buckets, clips
        parameters = intervals.parameters()
        held = np.where(SHARDED, -(-parameters // copies), parameters)
        self._weights, self._moments = VALUE * held, optimiser.moments * held
        # Whole weights on a device of a sharded stage: of both ends, and of two layers.
        ends = parameters - intervals.total("parameters")
        self._gathered = SHARDED * VALUE * (ends + 2 * intervals.largest(lambda layer: layer.parameters))
        handed_in, handed_out = intervals.handed()
        self._received = handed_in + handed_out
        # Sharded layers, gathered again in 16 bits, keep no casts.
        kept = intervals.total("kept") - SHARDED * intervals.total("cast")
        self._kept = intervals.ends("kept") + np.where(RECOMPUTES, intervals.total("handed"), kept)
        self._start, self._end = _start_working(intervals), _end_working(intervals)
        self._step = _step_working(intervals, optimiser, np.where(SHARDED, copies, 1))

    def parts(self, in_flight: int, micro_batches: int) -> Mapping[str, Whole]:
        """The bytes at the moment when they are most, by their names in Memory.

        in_flight: micro-batches under way at once.
        """
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


def _step_working(intervals: Intervals, optimiser: OptimiserCosts, shards: Whole) -> Whole:
    """The bytes of the optimiser's step where it makes its change apart: of a chunk, at least one tensor."""
    tied = np.maximum(intervals.is_first, intervals.is_last) * intervals.costs.heads.tied
    largest = np.maximum(intervals.largest(lambda layer: layer.parameters // 3), tied) // shards
    chunk = np.minimum(intervals.parameters() // shards, CHUNK + largest)
    return np.asarray(VALUE * chunk * optimiser.has_change)
