"""Tables with the time and memory of every possible stage.

A possible stage has a kind and a run of consecutive layers. The kind says whether the stage computes its
activations again in the backward pass, and whether it is sharded. All tables are arrays of shape (kinds, L +
1, L + 1) for L layers. The entry [kind, first, last] is for a stage of layers first to last - 1.
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
"""RECOMPUTES and SHARDED say which kinds of stages compute activations again, and which are sharded.

Both have shape (kinds, 1, 1). If several kinds are equally fast, the first of them is chosen.
"""

VALUE = 4
"""Bytes of a weight or a gradient, which are in fp32."""


class Intervals:
    """Sums and maxima of the layers' costs over every run of consecutive layers.

    The methods return tables of shape (L + 1, L + 1) for L layers. The entry [first, last] is for layers
    first to last - 1. Entries with first >= last have no meaning.
    is_first: table with 1 for stages that begin at layer 0 and so have the embeddings, otherwise 0.
    is_last: table with 1 for stages that end with the last layer and so have the heads, otherwise 0.
    """

    def __init__(self, costs: ModelCosts) -> None:
        self.costs = costs
        size = len(costs.layers) + 1
        self.is_first = np.zeros((size, size), dtype=np.int64)
        self.is_first[0] = 1
        self.is_last = np.zeros((size, size), dtype=np.int64)
        self.is_last[:, -1] = 1

    def sum_costs(self, name: str) -> NDArray[Any]:
        """Return for every stage the sum of one of its layers' costs.

        name: name of the cost, a field of ``PartCosts``.
        """
        # Layers with the costs [5, 3, 9] have the sums [0, 5, 8, 17]. Layers 1 to 2 cost sums[3] - sums[1] =
        # 12.
        sums = np.cumsum([0, *(getattr(layer, name) for layer in self.costs.layers)])
        return np.asarray(sums[None, :] - sums[:, None])

    def find_end_costs(self, name: str) -> NDArray[Any]:
        """Return for every stage the cost of its embeddings and heads. It is 0 for stages that have neither.

        name: name of the cost, a field of ``PartCosts``.
        """
        costs = self.costs
        return np.asarray(
            self.is_first * getattr(costs.embeddings, name) + self.is_last * getattr(costs.heads, name)
        )

    def find_largest(self, value: Callable[[PartCosts], int]) -> Whole:
        """Return for every stage the maximum of a value over its layers.

        value: function from the costs of a layer to the value.
        """
        values = np.array([value(layer) for layer in self.costs.layers], dtype=np.int64)
        result = np.zeros(self.is_first.shape, dtype=np.int64)
        for first in range(len(values)):
            result[first, first + 1 :] = np.maximum.accumulate(values[first:])
        return result

    def find_transfers(self) -> tuple[Whole, Whole]:
        """Return the bytes that each stage receives from the previous stage, and the bytes that
        it sends to the next.
        """
        handed = np.array([0, *(layer.handed for layer in self.costs.layers)], dtype=np.int64)
        return handed[:, None] * (1 - self.is_first), handed[None, :] * (1 - self.is_last)

    def parameters(self) -> Whole:
        """Return for every stage the number of its weights.

        If the word embeddings are tied, a last stage that is not also the first stage has
        its own copy of them.
        """
        own = self.is_last * (1 - self.is_first) * self.costs.heads.tied
        return np.asarray(self.sum_costs("parameters") + self.find_end_costs("parameters") + own)


def compute_stage_times(
    intervals: Intervals, copies: int, bandwidth: float, sharding: ShardingRate
) -> Mapping[str, Real]:
    """Return tables with the seconds of all possible stages, by the name that
    ``StagePlan`` gives to the time.

    In an all-reduce over n copies, each copy sends and receives 2 (n - 1) / n of its gradients. A sharded
    stage gathers its weights for each pass, and scatters its gradients in the backward pass. Each time a copy
    moves (n - 1) / n of the weights or gradients. Layers are gathered in the type of their matrix products,
    so in 16 bits they move half the bytes. No transfer is assumed to overlap with computation.
    copies: number of copies of each stage.
    bandwidth: bytes per second between two devices.
    sharding: speeds of gathering and scattering in sharded stages.
    """
    values, step = intervals.parameters(), intervals.costs.step
    moved = VALUE * values * (copies - 1) / copies
    # ``cast`` is the size of the layers' weights in 16 bits. In fp32 they have twice this size, so gathering
    # them in 16 bits saves ``cast`` bytes.
    gathered = moved - intervals.sum_costs("cast") * (copies - 1) / copies
    forward = intervals.sum_costs("forward") + intervals.find_end_costs("forward")
    backward = intervals.sum_costs("backward") + intervals.find_end_costs("backward")
    is_one_end = intervals.is_first != intervals.is_last
    # If the word embeddings are tied, the first and the last stage sum their gradients of them. This is not
    # needed if one stage has both the embeddings and the heads.
    tied = is_one_end * (VALUE * intervals.costs.heads.tied / bandwidth)
    times = {
        "forward": forward + SHARDED * (gathered / sharding.forward),
        "backward": backward
        + RECOMPUTES * intervals.sum_costs("recompute")
        + SHARDED * ((gathered + moved) / sharding.backward),
        "transfer": 2 * intervals.find_transfers()[1] / bandwidth,
        "all_reduce": np.where(SHARDED, tied / copies, tied + 2 * moved / bandwidth),
        "step": np.where(SHARDED, step * values / copies, step * values),
    }
    return dict(zip(times, np.broadcast_arrays(*times.values()), strict=True))


class StageMemory:
    """Peak memory of all possible stages, in bytes per device.

    A device holds the weights and moments of its stage. It holds what each micro-batch under way (between
    forward and backward pass) keeps for its backward pass. And it holds buffers that receive activations and
    gradients, of which PyTorch's pipelining keeps one for each micro-batch of the update.

    In addition, temporary memory is needed at three moments, and the largest of these needs counts. They are
    the start of a backward pass (in the heads or in the last layer), its end (in the first layer or in the
    embeddings), and the optimiser's step.

    A sharded stage holds only its share of the weights. In addition it holds the gathered weights of
    embeddings, heads and two layers, and at the end of a backward pass as many gradients.
    """

    def __init__(
        self, intervals: Intervals, copies: int, optimiser: OptimiserCosts, in_buckets: bool, clips: bool
    ) -> None:
        """Compute the tables of memory that do not depend on the number of micro-batches.

        copies: number of copies of each stage.
        in_buckets: whether the sums of gradients exist from the start of an update. Otherwise they exist
            after the first backward pass.
        clips: whether each micro-batch's gradients are clipped before they are added to the sums, so that
            both exist at once.
        """
        self._in_buckets, self._clips = in_buckets, clips
        parameters = intervals.parameters()
        held = np.where(SHARDED, -(-parameters // copies), parameters)
        self._weights, self._moments = VALUE * held, optimiser.moments * held
        # A sharded stage holds gathered weights: those of embeddings and heads all the time, and those of two
        # layers, because the next layer is gathered while a layer computes.
        ends = parameters - intervals.sum_costs("parameters")
        self._gathered = SHARDED * VALUE * (ends + 2 * intervals.find_largest(lambda layer: layer.parameters))
        handed_in, handed_out = intervals.find_transfers()
        self._received = handed_in + handed_out
        # A sharded layer is gathered again, in 16 bits, for its backward pass, so it keeps no 16-bit copy
        # from the forward pass. A stage that recomputes keeps only the input of each layer.
        kept = intervals.sum_costs("kept") - SHARDED * intervals.sum_costs("cast")
        self._kept = intervals.find_end_costs("kept") + np.where(
            RECOMPUTES, intervals.sum_costs("handed"), kept
        )
        self._start, self._end = _compute_start_memory(intervals), _compute_end_memory(intervals)
        self._step = _compute_step_memory(intervals, optimiser, np.where(SHARDED, copies, 1))

    def find_peaks(self, in_flight: int, micro_batches: int) -> Mapping[str, Whole]:
        """Return tables with the bytes at the moment of peak memory, by the name that ``Memory``
        gives to the purpose.

        in_flight: largest number of micro-batches that are between their forward and backward pass at once.
        micro_batches: number of micro-batches per update.
        """
        # Memory may be highest at the start or at the end of a backward pass. At the start, all micro-batches
        # under way still keep their activations. At the end, one micro-batch has no activations left, but its
        # gradients exist.
        gradients = self._weights
        start = in_flight * self._kept + self._start + self._gathered
        apart = gradients * (~SHARDED & (self._clips and micro_batches > 1))
        end = np.maximum((in_flight - 1) * self._kept + self._end + apart, self._step)
        end = end + 2 * self._gathered  # gathered weights and equally large gradients
        # The sums of gradients also exist at the start of a backward pass if an earlier one has been
        # completed.
        is_summing = self._in_buckets or micro_batches > in_flight
        is_end = end + gradients * (not is_summing) > start
        return {
            "weights": self._weights,
            "gradients": np.where(is_end | is_summing, gradients, 0),
            "moments": self._moments,
            "activations": np.where(is_end, end, start) + micro_batches * self._received,
        }


def _compute_start_memory(intervals: Intervals) -> Whole:
    """Return for every stage the temporary memory in bytes at the start of a backward pass.

    It is the larger of the needs of the heads and of the last layer. Copies of weights in 16 bits count too,
    since they stay until the end of the forward pass.
    """
    heads = intervals.costs.heads
    # A layer that recomputes makes the activations of its forward pass again, one layer at a time.
    layer = np.where(
        RECOMPUTES,
        intervals.find_largest(lambda layer: layer.working + layer.kept),
        intervals.find_largest(lambda layer: layer.working),
    )
    # If activations are computed again, autocast's 16-bit copies are not counted among the kept bytes. They
    # still exist until the forward pass ends.
    casts = intervals.sum_costs("cast") * (RECOMPUTES & ~SHARDED)
    # When the heads' backward pass is done, the memory that they kept is free again.
    after = layer + _compute_tied_gradient_memory(intervals) - intervals.is_last * heads.kept
    return np.asarray(np.maximum(np.maximum(intervals.is_last * heads.working, after), casts))


def _compute_end_memory(intervals: Intervals) -> Whole:
    """Return for every stage the temporary memory in bytes at the end of a backward pass.

    It is needed in the backward pass of the stage's first layer or of the embeddings.
    """
    embeddings = intervals.costs.embeddings
    kept = intervals.is_first * embeddings.kept
    layer = intervals.find_largest(lambda layer: layer.kept + layer.working)
    return (
        kept
        + _compute_tied_gradient_memory(intervals)
        + np.maximum(layer, intervals.is_first * embeddings.working)
    )


def _compute_tied_gradient_memory(intervals: Intervals) -> Whole:
    """Return for every stage the bytes of the tied word embeddings' gradient.

    It is 0 unless the stage has both ends.

    In a stage with embeddings and heads, the heads compute their share of this gradient at the start of the
    backward pass. It stays in memory until the embeddings add their share at the end.
    """
    return intervals.is_first * intervals.is_last * (VALUE * intervals.costs.heads.tied)


def _compute_step_memory(intervals: Intervals, optimiser: OptimiserCosts, shards: Whole) -> Whole:
    """Return for every stage the temporary memory in bytes that the optimiser's step needs.

    It is 0 for optimisers that do not compute the whole change before they apply it. The others work on
    chunks of weights, and a chunk holds at least one whole tensor.
    shards: table with the number of processes that share the weights of a stage.
    """
    # The largest tensor is either a third of a layer (a feed-forward matrix) or the tied word embeddings.
    tied = np.maximum(intervals.is_first, intervals.is_last) * intervals.costs.heads.tied
    largest = np.maximum(intervals.find_largest(lambda layer: layer.parameters // 3), tied) // shards
    chunk = np.minimum(intervals.parameters() // shards, CHUNK + largest)
    return np.asarray(VALUE * chunk * optimiser.has_change)
