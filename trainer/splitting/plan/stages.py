"""Tables with time and memory of every possible stage, that is for each kind and each run of consecutive
layers.

All tables are arrays of shape (kinds, L + 1, L + 1) for L layers. The entry [kind, first, last] is for a
stage of layers first to last - 1. A kind says whether the stage recomputes its activations and whether it is
sharded.
"""

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
"""RECOMPUTES and SHARDED say for each kind of stage whether it recomputes activations and whether it is
sharded. Both have shape (kinds, 1, 1).

If several kinds are equally fast, the first of them is chosen.
"""

VALUE = 4
"""Bytes of a weight or a gradient."""


class Intervals:
    """Sums and maxima of the layers' costs over all runs of consecutive layers.

    Results have shape (L + 1, L + 1). The entry [first, last] is for layers first to last - 1. Entries with
    first >= last mean nothing.
    is_first: 1 for stages with the embeddings, otherwise 0. is_last: 1 for stages with the heads, otherwise
    0.
    """

    def __init__(self, costs: ModelCosts) -> None:
        self.costs = costs
        size = len(costs.layers) + 1
        self.is_first = np.zeros((size, size), dtype=np.int64)
        self.is_first[0] = 1
        self.is_last = np.zeros((size, size), dtype=np.int64)
        self.is_last[:, -1] = 1

    def total(self, name: str) -> NDArray[Any]:
        """Return the sum of one of the layers' costs over the stage."""
        # Costs [5, 3, 9] -> sums [0, 5, 8, 17]. Layers 1 to 2 cost sums[3] - sums[1] = 12.
        sums = np.cumsum([0, *(getattr(layer, name) for layer in self.costs.layers)])
        return np.asarray(sums[None, :] - sums[:, None])

    def ends(self, name: str) -> NDArray[Any]:
        """Return the cost of the embeddings and heads for stages that have them, and 0 for other stages.

        name: name of the cost, a field of PartCosts.
        """
        costs = self.costs
        return np.asarray(
            self.is_first * getattr(costs.embeddings, name) + self.is_last * getattr(costs.heads, name)
        )

    def largest(self, value: Callable[[PartCosts], int]) -> Whole:
        """Return the maximum of a value over the stage's layers."""
        values = np.array([value(layer) for layer in self.costs.layers], dtype=np.int64)
        result = np.zeros(self.is_first.shape, dtype=np.int64)
        for first in range(len(values)):
            result[first, first + 1 :] = np.maximum.accumulate(values[first:])
        return result

    def handed(self) -> tuple[Whole, Whole]:
        """Return the bytes that each stage receives from the previous stage, and the bytes that it sends to
        the next.
        """
        handed = np.array([0, *(layer.handed for layer in self.costs.layers)], dtype=np.int64)
        return handed[:, None] * (1 - self.is_first), handed[None, :] * (1 - self.is_last)

    def parameters(self) -> Whole:
        """Return the number of weights of the stage.

        If the word embeddings are tied, a last stage that is not also the first has its own copy of them.
        """
        own = self.is_last * (1 - self.is_first) * self.costs.heads.tied
        return np.asarray(self.total("parameters") + self.ends("parameters") + own)


def compute_stage_times(
    intervals: Intervals, copies: int, bandwidth: float, sharding: ShardingRate
) -> Mapping[str, Real]:
    """Return the seconds of all stages, by the name of the time in StagePlan.

    bandwidth: bytes per second between devices. sharding: rates of gathering and scattering in sharded
    stages.
    In an all-reduce over n copies, each copy sends and receives 2 (n - 1) / n of its gradients. A sharded
    stage gathers its weights for each pass, and scatters its gradients in the backward pass. A copy moves (n
    - 1) / n of the weights and of the gradients. Layers are gathered in the type of their products, so in 16
    bits they move half the bytes. No transfer is assumed to overlap with computation.
    """
    values, step = intervals.parameters(), intervals.costs.step
    moved = VALUE * values * (copies - 1) / copies
    # ``cast`` is the size of the layers' weights in 16 bits. In fp32 they have twice the size, so gathering
    # them in 16 bits saves ``cast`` bytes.
    gathered = moved - intervals.total("cast") * (copies - 1) / copies
    forward = intervals.total("forward") + intervals.ends("forward")
    backward = intervals.total("backward") + intervals.ends("backward")
    is_one_end = intervals.is_first != intervals.is_last
    # Tied word embeddings: the first and the last stage sum their gradients, unless one stage has both ends.
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
    """Peak memory of all stages, in bytes per device.

    A device holds weights and moments of its stage, what each micro-batch under way keeps for its backward
    pass, and buffers that receive activations and gradients. PyTorch's pipelining keeps such a buffer for
    each micro-batch of the update.
    On top of these comes the largest of four temporary needs: the start of a backward pass in the heads or in
    the last layer, its end in the first layer or in the embeddings, and the optimiser's step.
    A sharded stage holds its share of the weights. It also holds gathered weights, of embeddings, heads and
    two layers, and their gradients at the end of a backward pass.
    """

    def __init__(
        self, intervals: Intervals, copies: int, optimiser: OptimiserCosts, in_buckets: bool, clips: bool
    ) -> None:
        """Compute the tables of memory that do not depend on the number of micro-batches.

        in_buckets: the sums of gradients exist from the start of the update, not only after the first
        backward pass.
        clips: gradients of a micro-batch are complete before they are added to the sums, so both exist at
        once.
        """
        self._in_buckets, self._clips = in_buckets, clips
        parameters = intervals.parameters()
        held = np.where(SHARDED, -(-parameters // copies), parameters)
        self._weights, self._moments = VALUE * held, optimiser.moments * held
        # Gathered weights of a sharded stage: embeddings and heads all the time, and two layers, because the
        # next one is gathered while a layer computes.
        ends = parameters - intervals.total("parameters")
        self._gathered = SHARDED * VALUE * (ends + 2 * intervals.largest(lambda layer: layer.parameters))
        handed_in, handed_out = intervals.handed()
        self._received = handed_in + handed_out
        # A sharded layer is gathered in 16 bits again for its backward pass, so it keeps no 16-bit copy. A
        # stage that recomputes keeps only the input of each layer.
        kept = intervals.total("kept") - SHARDED * intervals.total("cast")
        self._kept = intervals.ends("kept") + np.where(RECOMPUTES, intervals.total("handed"), kept)
        self._start, self._end = _compute_start_memory(intervals), _compute_end_memory(intervals)
        self._step = _compute_step_memory(intervals, optimiser, np.where(SHARDED, copies, 1))

    def parts(self, in_flight: int, micro_batches: int) -> Mapping[str, Whole]:
        """Return the bytes at the peak, by the name of the purpose in Memory.

        in_flight: number of micro-batches that are between their forward and backward pass at once.
        """
        # Memory may be highest at the start or at the end of a backward pass. At the start, all micro-batches
        # under way still keep their activations. At the end, one micro-batch has no activations left, but its
        # gradients exist.
        gradients = self._weights
        start = in_flight * self._kept + self._start + self._gathered
        apart = gradients * (~SHARDED & (self._clips and micro_batches > 1))
        end = np.maximum((in_flight - 1) * self._kept + self._end + apart, self._step)
        end = end + 2 * self._gathered  # gathered weights, and as many gradients
        # Sums of gradients exist at the start too if an earlier micro-batch has already gone backward.
        is_summing = self._in_buckets or micro_batches > in_flight
        is_end = end + gradients * (not is_summing) > start
        return {
            "weights": self._weights,
            "gradients": np.where(is_end | is_summing, gradients, 0),
            "moments": self._moments,
            "activations": np.where(is_end, end, start) + micro_batches * self._received,
        }


def _compute_start_memory(intervals: Intervals) -> Whole:
    """Return the temporary memory in bytes at the start of a backward pass.

    It is needed in the backward pass of the heads, or of the last layer after that. Copies of weights in 16
    bits stay until the end of the forward pass.
    """
    heads = intervals.costs.heads
    # A layer that recomputes makes its kept activations again, one layer at a time.
    layer = np.where(
        RECOMPUTES,
        intervals.largest(lambda layer: layer.working + layer.kept),
        intervals.largest(lambda layer: layer.working),
    )
    # With checkpointing, autocast's 16-bit copies are not among the kept bytes, but they exist in the forward
    # pass until it ends.
    casts = intervals.total("cast") * (RECOMPUTES & ~SHARDED)
    # When the heads' backward pass is done, the memory that they kept is free again.
    after = layer + _compute_tied_gradient_memory(intervals) - intervals.is_last * heads.kept
    return np.asarray(np.maximum(np.maximum(intervals.is_last * heads.working, after), casts))


def _compute_end_memory(intervals: Intervals) -> Whole:
    """Return the temporary memory in bytes at the end of a backward pass.

    It is needed in the backward pass of the stage's first layer, or of the embeddings.
    """
    embeddings = intervals.costs.embeddings
    kept = intervals.is_first * embeddings.kept
    layer = intervals.largest(lambda layer: layer.kept + layer.working)
    return (
        kept
        + _compute_tied_gradient_memory(intervals)
        + np.maximum(layer, intervals.is_first * embeddings.working)
    )


def _compute_tied_gradient_memory(intervals: Intervals) -> Whole:
    """Return the bytes of the tied word embeddings' gradient, in a stage that has both embeddings and heads.

    The heads make their share of this gradient at the start of the backward pass. It stays in memory until
    the embeddings add their share at the end.
    """
    return intervals.is_first * intervals.is_last * (VALUE * intervals.costs.heads.tied)


def _compute_step_memory(intervals: Intervals, optimiser: OptimiserCosts, shards: Whole) -> Whole:
    """Return the temporary memory in bytes of the optimiser's step.

    Only optimisers that compute the whole change before they apply it need temporary memory. Such an
    optimiser works on chunks of weights, and a chunk holds at least one whole tensor.
    """
    # The largest tensor is either a third of a layer (a feed-forward matrix) or the tied word embeddings.
    tied = np.maximum(intervals.is_first, intervals.is_last) * intervals.costs.heads.tied
    largest = np.maximum(intervals.largest(lambda layer: layer.parameters // 3), tied) // shards
    chunk = np.minimum(intervals.parameters() // shards, CHUNK + largest)
    return np.asarray(VALUE * chunk * optimiser.has_change)
