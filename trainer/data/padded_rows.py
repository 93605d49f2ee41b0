"""Making batches of padded rows from gathered examples. A row has one example, or several packed examples."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bertdata.errors import SettingsError, ShardError
from bertdata.examples.columns import Array
from trainer.data.batches import Form, Prepare
from trainer.data.examples import GatheredExamples, Rows
from trainer.data.modernbert_rows import ROW_LAYOUT
from trainer.data.packs import count_mask_slots
from trainer.data.row_batches import RowBatch

# Widths of rows, in tokens, are multiples of this number, which suits matrix units (LDDL's loader has it
# too).
WIDTH_STEP = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class RowForm(Form):
    """Object that makes batches of padded rows with at most S ids, for devices that cannot use flat batches.

    slots: number of slots for masked words in a packed row. None: rows are not packed.
    width_step: rows are padded to the length of the micro-batch's longest row, rounded up to a multiple of
    this number. None: all rows are padded to S ids.
    """

    slots: int | None = None
    width_step: int | None = None

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[RowBatch]:
        """Yield batches of ``size`` rows from the examples. If all batches have the same width, ``prepare``
        is called once for all of them.
        """
        if self.width_step is not None:
            for start in range(0, max(gathered.rows, 1), size):
                own = gathered.slice_rows(start, start + size)
                yield prepare(pad_rows(_narrow_windows(own, self.width_step), size))
            return
        count = max(-(-gathered.rows // size), 1) * size
        whole = pad_rows(gathered, count) if self.slots is None else pack_rows(gathered, count, self.slots)
        batch = prepare(whole)
        for start in range(0, count, size):
            yield batch.slice_rows(start, min(start + size, count))

    def make_blank_batches(self) -> Iterator[RowBatch]:
        """Yield nothing, because padded rows are not compiled in advance."""
        return iter(())

    @property
    def sizes_vary(self) -> bool:
        """True if batches have different widths."""
        return self.width_step is not None

    def describe(self) -> str:
        """Return a text for the log about the width of the rows."""
        if self.width_step is not None:
            return f"rows padded to the longest of a micro-batch, to a multiple of {self.width_step} tokens"
        return "padded rows" if self.slots is None else f"packed rows with {self.slots} masked slots"


def make_row_form(rows: Rows, few_widths: bool = False) -> RowForm:
    """Return the object that makes batches of padded rows.

    rows: the rows that are trained on.
    few_widths: True limits the number of different widths of rows to the number of length bins. False allows
    every multiple of 8.
    """
    if rows.layout.packing == ROW_LAYOUT:
        raise SettingsError("masking modernbert has flat batches, which this device does not take")
    if rows.layout.packing is not None:
        return RowForm(slots=count_mask_slots(rows))
    if rows.bins == 1:
        return RowForm()
    return RowForm(
        width_step=choose_width_step(rows.layout.max_seq_length, rows.bins if few_widths else None)
    )


def choose_width_step(longest: int, widths: int | None) -> int:
    """Return the step between two widths of rows: the smallest multiple of 8 with at most ``widths`` widths.

    longest: the largest width.
    widths: largest number of different widths. None: any number, so the step is 8.
    """
    return WIDTH_STEP if widths is None else -(-longest // (widths * WIDTH_STEP)) * WIDTH_STEP


def _narrow_windows(gathered: GatheredExamples, step: int) -> GatheredExamples:
    """Return the examples in narrower arrays: as wide as the longest example, rounded up to a multiple of
    ``step``.
    """
    longest = int(gathered.lengths.max(initial=1))
    width = min(-(-longest // step) * step, gathered.layout.max_seq_length)
    layout = replace(gathered.layout, max_seq_length=width)
    ids = np.ascontiguousarray(gathered.ids[:, :width])
    targets = {name: values[:, :width] for name, values in gathered.token_targets.items()}
    return replace(gathered, ids=ids, layout=layout, token_targets=targets)


def pad_rows(gathered: GatheredExamples, count: int) -> RowBatch:
    """Make a batch of ``count`` padded rows, with an example in each row.

    If there are fewer examples, the batch is filled up with rows of zeros whose label is -1. Padding after
    an example has the padding id of the tokeniser. The arrays of the gathered examples are changed in place.
    """
    layout = gathered.layout
    slot = np.arange(layout.max_seq_length, dtype=np.int32)
    # ``used`` says which cells have ids, and ``second`` which of them belong to segment 1. Both have the
    # shape (rows, S). ``masked`` says which slots for masked words are used, and has the shape (rows, P).
    used = slot < gathered.lengths[:, np.newaxis]
    second = used & (slot >= gathered.segment_lengths[:, np.newaxis])
    masked = np.arange(layout.max_predictions_per_seq, dtype=np.int32) < gathered.masks[:, np.newaxis]
    ids = np.multiply(gathered.ids, used, out=gathered.ids)
    if layout.padding_id:
        np.putmask(ids, ~used, layout.padding_id)
    arrays = {
        "input_ids": ids,
        "token_type_ids": second.astype(np.int32),
        "attention_mask": used.astype(np.int32),
        "masked_lm_positions": np.multiply(gathered.positions, masked, out=gathered.positions),
        "masked_lm_ids": np.multiply(gathered.labels, masked, out=gathered.labels),
        "masked_lm_weights": masked.astype(np.float32),
        "next_sentence_labels": gathered.pair_labels,
    }
    if count > len(gathered):
        arrays = {name: _add_zero_rows(array, count) for name, array in arrays.items()}
        arrays["next_sentence_labels"][len(gathered) :] = -1
    own = gathered.targets | {name: values * used for name, values in gathered.token_targets.items()}
    targets = {name: _add_zero_rows(values, count) for name, values in own.items()}
    return RowBatch.of(arrays, targets)


def _add_zero_rows(array: Array, count: int) -> Array:
    """Return the array with rows of zeros appended, so that it has ``count`` rows."""
    longer = np.zeros((count, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def pack_rows(gathered: GatheredExamples, count: int, slots: int) -> RowBatch:
    """Make a batch of ``count`` packed rows, with the gathered examples.

    If there are fewer rows, the batch is filled up with rows of zeros whose label is -1. ShardError if a row
    has more examples, ids or masked words than fit.
    slots: number of slots for masked words in a row.
    """
    # For each example, ``row`` is its row, ``number`` its place among the row's examples, and ``starts`` the
    # place in the row where its tokens begin.
    lengths, row_ends = gathered.lengths, gathered.row_ends
    sizes = np.diff(row_ends, prepend=0)
    row = np.repeat(np.arange(gathered.rows), sizes)
    number = np.arange(len(gathered)) - (row_ends - sizes)[row]
    tokens, masks = _sum_rows(lengths, row_ends), _sum_rows(gathered.masks, row_ends)
    _check_row_sizes(gathered, sizes, tokens, masks, slots)
    before = np.cumsum(lengths) - lengths
    starts = before - (np.cumsum(tokens) - tokens)[row]  # from the start of the row
    place = np.arange(lengths.sum()) - np.repeat(before, lengths)
    # ``used`` and ``masked`` say which cells of the batch to fill. ``own_ids`` and ``own_masks`` say which
    # cells of the examples' arrays to read. They have equally many true cells in the same order, so that
    # _spread_values can copy all values at once.
    used, masked = _mark_used(tokens, count, gathered.layout.max_seq_length), _mark_used(masks, count, slots)
    own_ids = _mark_used(lengths, len(gathered), gathered.ids.shape[1])
    own_masks = _mark_used(gathered.masks, len(gathered), gathered.labels.shape[1])
    first, labels = np.zeros((2, count, gathered.layout.sequences_per_row), np.int32)
    labels -= 1
    first[row, number], labels[row, number] = starts, gathered.pair_labels
    arrays = {
        "input_ids": _spread_values(gathered.ids[own_ids], used),
        "token_type_ids": _spread_values(place >= np.repeat(gathered.segment_lengths, lengths), used),
        "attention_mask": _spread_values(np.repeat(number + 1, lengths), used),
        "position_ids": _spread_values(place, used),
        "masked_lm_positions": _spread_values(
            (gathered.positions + starts[:, np.newaxis])[own_masks], masked
        ),
        "masked_lm_ids": _spread_values(gathered.labels[own_masks], masked),
        "masked_lm_weights": masked.astype(np.float32),
        "next_sentence_positions": first,
        "next_sentence_labels": labels,
    }
    targets = {name: _spread_values(values[own_ids], used) for name, values in gathered.token_targets.items()}
    for name, values in gathered.targets.items():
        targets[name] = np.zeros((*labels.shape, *values.shape[1:]), np.int32)
        targets[name][row, number] = values
    return RowBatch.of(arrays, targets)


def _check_row_sizes(
    gathered: GatheredExamples, sizes: Array, tokens: Array, masks: Array, slots: int
) -> None:
    """Raise ShardError if a packed row has too many examples, ids or masked words.

    sizes: number of examples in each row.
    tokens: number of ids in each row.
    masks: number of masked words in each row.
    slots: number of slots for masked words in a row.
    """
    most = {
        "examples": (sizes, gathered.layout.sequences_per_row),
        "ids": (tokens, gathered.layout.max_seq_length),
        "masked words": (masks, slots),
    }
    for what, (found, limit) in most.items():
        if (found > limit).any():
            raise ShardError(f"a packed row holds {found.max()} {what}, at most {limit} fit in a row")


def _sum_rows(values: Array, ends: Array) -> Array:
    """Return the sum of the values of each row. ends: for each row, the index of the value after its last."""
    totals = np.insert(np.cumsum(values, dtype=np.int64), 0, 0)
    return np.diff(totals[ends], prepend=0)


def _mark_used(sizes: Array, count: int, width: int) -> Array:
    """Return a boolean array (count, width) that is true in the first ``sizes[i]`` cells of row i."""
    padded = np.zeros(count, np.int64)
    padded[: len(sizes)] = sizes
    return np.arange(width) < padded[:, np.newaxis]


def _spread_values(values: Array, used: Array) -> Array:
    """Fill cells of an array of zeros with values, one after the other. Return the array.

    used: True for the cells to fill. The result has the same shape.
    """
    rows = np.zeros(used.shape, np.int32)
    rows[used] = values
    return rows
