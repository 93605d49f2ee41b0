"""Row batches of packs: the examples of a row one behind the other, padded to S ids."""

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from trainer.data.examples import GatheredExamples
from trainer.extensions.loading.row_batches import RowBatch


def pack_rows(gathered: GatheredExamples, count: int, slots: int) -> RowBatch:
    """A batch of ``count`` packed rows: the gathered ones, then missing ones (zeros with the label -1).

    slots: masked slots of a row. ShardError where a row holds more examples, ids or masked words than fit.
    """
    lengths, row_ends = gathered.lengths, gathered.row_ends
    sizes = np.diff(row_ends, prepend=0)
    row = np.repeat(np.arange(gathered.rows), sizes)
    number = np.arange(len(gathered)) - (row_ends - sizes)[row]
    tokens, masks = _sums(lengths, row_ends), _sums(gathered.masks, row_ends)
    _check(gathered, sizes, tokens, masks, slots)
    before = np.cumsum(lengths) - lengths
    starts = before - (np.cumsum(tokens) - tokens)[row]  # from the start of the row
    place = np.arange(lengths.sum()) - np.repeat(before, lengths)
    used, masked = _used(tokens, count, gathered.layout.max_seq_length), _used(masks, count, slots)
    own_ids = _used(lengths, len(gathered), gathered.ids.shape[1])
    own_masks = _used(gathered.masks, len(gathered), gathered.labels.shape[1])
    first, labels = np.zeros((2, count, gathered.layout.sequences_per_row), np.int32)
    labels -= 1
    first[row, number], labels[row, number] = starts, gathered.pair_labels
    arrays = {
        "input_ids": _spread(gathered.ids[own_ids], used),
        "token_type_ids": _spread(place >= np.repeat(gathered.segment_lengths, lengths), used),
        "attention_mask": _spread(np.repeat(number + 1, lengths), used),
        "position_ids": _spread(place, used),
        "masked_lm_positions": _spread((gathered.positions + starts[:, np.newaxis])[own_masks], masked),
        "masked_lm_ids": _spread(gathered.labels[own_masks], masked),
        "masked_lm_weights": masked.astype(np.float32),
        "next_sentence_positions": first,
        "next_sentence_labels": labels,
    }
    targets = {name: _spread(values[own_ids], used) for name, values in gathered.token_targets.items()}
    for name, values in gathered.targets.items():
        targets[name] = np.zeros((*labels.shape, *values.shape[1:]), np.int32)
        targets[name][row, number] = values
    return RowBatch.of(arrays, targets)


def _check(gathered: GatheredExamples, sizes: Array, tokens: Array, masks: Array, slots: int) -> None:
    most = {
        "examples": (sizes, gathered.layout.sequences_per_row),
        "ids": (tokens, gathered.layout.max_seq_length),
        "masked words": (masks, slots),
    }
    for what, (found, limit) in most.items():
        if (found > limit).any():
            raise ShardError(f"a packed row holds {found.max()} {what}, at most {limit} fit in a row")


def _sums(values: Array, ends: Array) -> Array:
    """The sum of each row's values. ends: the value after each row."""
    totals = np.insert(np.cumsum(values, dtype=np.int64), 0, 0)
    return np.diff(totals[ends], prepend=0)


def _used(sizes: Array, count: int, width: int) -> Array:
    """(count, width), true at the first places of each row, as many as its size. Missing rows have none."""
    padded = np.zeros(count, np.int64)
    padded[: len(sizes)] = sizes
    return np.arange(width) < padded[:, np.newaxis]


def _spread(values: Array, used: Array) -> Array:
    """The values one after the other in the used places of rows, zeros elsewhere."""
    rows = np.zeros(used.shape, np.int32)
    rows[used] = values
    return rows
