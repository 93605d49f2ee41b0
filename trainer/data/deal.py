"""The deal of an update's examples to its micro-batches.

Dealt in turn, example i of an update goes to micro-batch i mod Q, Q = workers x accumulation. Where the
lengths of the examples are known, each group of neighbouring micro-batches deals its examples anew, so that
all of the group have near equal tokens: no worker then waits for one with longer examples.
"""

import numpy as np

from bertdata.examples.columns import Array

_GROUP_EXAMPLES = 1024  # enough for groups to have near equal tokens too
_GROUP_MICRO_BATCHES = 8


def group_size(micro_batches: int, batch_size: int) -> int:
    """Neighbouring micro-batches that exchange examples: a divisor of their number in an update.

    The smallest one that makes 8 micro-batches and 1024 examples. It bounds what a worker decodes: the
    files of its group, however many workers there are. Measured, a core decodes 90,000 to 220,000 examples of
    TFRecord a second, so the decoding for 8 GPUs takes each of their workers some 7 % of a core.
    """
    least = min(micro_batches, max(_GROUP_MICRO_BATCHES, -(-_GROUP_EXAMPLES // batch_size)))
    return next(size for size in range(least, micro_batches + 1) if micro_batches % size == 0)


def deal_evenly(lengths: Array, parts: int) -> Array:
    """The examples of each part, (groups, parts, n / parts) ascending, from (groups, n) lengths.

    The longest examples go first, one to each part in a round, the longest of a round to the part with the
    fewest tokens so far; of equals, to the first. So examples of one length are dealt in turn.
    """
    groups, count = lengths.shape
    order = np.argsort(-lengths.astype(np.int64), axis=1, kind="stable")
    falling = np.take_along_axis(lengths.astype(np.int64), order, axis=1)
    totals = np.zeros((groups, parts), np.int64)
    chosen = np.empty((groups, count), np.int64)
    row = np.arange(groups)[:, np.newaxis]
    for start in range(0, count, parts):
        lightest = np.argsort(totals, axis=1, kind="stable")
        totals[row, lightest] += falling[:, start : start + parts]
        chosen[row, order[:, start : start + parts]] = lightest
    return np.argsort(chosen, axis=1, kind="stable").reshape(groups, parts, count // parts)


class Deal:
    """One worker's share of every update: a function of the lengths, Q and the batch size.

    offsets: (groups, examples), the examples of an update among which its own are.
    """

    def __init__(
        self, *, workers: int, rank: int, accumulation: int, batch_size: int, by_lengths: bool
    ) -> None:
        micro_batches = workers * accumulation
        self.size = group_size(micro_batches, batch_size) if by_lengths else 1
        own = rank + workers * np.arange(accumulation)
        groups, self._group = np.unique(own // self.size, return_inverse=True)
        self._part = own % self.size
        members = groups[:, np.newaxis, np.newaxis] * self.size + np.arange(self.size)
        turns = micro_batches * np.arange(batch_size)[:, np.newaxis]
        self.offsets = (members + turns).reshape(len(groups), -1)

    def own(self, lengths: Array) -> Array:
        """Indices into the flattened lengths, (updates, groups, examples): this worker's examples.

        They come update by update, micro-batch by micro-batch.
        """
        updates, groups, count = lengths.shape
        dealt = deal_evenly(lengths.reshape(-1, count), self.size).reshape(updates, groups, self.size, -1)
        starts = np.arange(updates * groups).reshape(updates, groups, 1, 1) * count
        own: Array = (dealt + starts)[:, self._group, self._part].ravel()
        return own
