"""Batches of padded rows made from gathered examples: an example per row, or several packed."""

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

WIDTH_STEP = 8  # tokens, for matrix units, as in LDDL's loader


@dataclass(frozen=True, kw_only=True, slots=True)
class RowForm(Form):
    """Maker of batches of padded rows with S ids, for devices that cannot use flat batches.

    slots: masked slots of a packed row. None: rows are not packed.
    width_step: rows are padded to the longest of the micro-batch, rounded up to a multiple of this. None:
    rows are padded to S.
    """

    slots: int | None = None
    width_step: int | None = None

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[RowBatch]:
        """Yield batches of ``size`` rows. If all have the same width they are prepared together."""
        if self.width_step is not None:
            for start in range(0, max(gathered.rows, 1), size):
                own = gathered.cut(start, start + size)
                yield prepare(pad_rows(_narrow_windows(own, self.width_step), size))
            return
        count = max(-(-gathered.rows // size), 1) * size
        whole = pad_rows(gathered, count) if self.slots is None else pack_rows(gathered, count, self.slots)
        batch = prepare(whole)
        for start in range(0, count, size):
            yield batch.cut(start, min(start + size, count))

    def blanks(self) -> Iterator[RowBatch]:
        return iter(())

    @property
    def sizes_vary(self) -> bool:
        return self.width_step is not None

    def describe(self) -> str:
        if self.width_step is not None:
            return f"rows padded to the longest of a micro-batch, to a multiple of {self.width_step} tokens"
        return "padded rows" if self.slots is None else f"packed rows with {self.slots} masked slots"


def make_row_form(rows: Rows, few_widths: bool = False) -> RowForm:
    """Return the object that makes padded batches of these rows.

    few_widths: rows from bins get at most as many different widths as there are bins. Otherwise widths are
    multiples of 8.
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
    """Return the step between the widths of rows: the smallest multiple of 8 that makes at most ``widths``.

    longest: the largest width. widths: None for a step of 8.
    """
    return WIDTH_STEP if widths is None else -(-longest // (widths * WIDTH_STEP)) * WIDTH_STEP


def _narrow_windows(gathered: GatheredExamples, step: int) -> GatheredExamples:
    """Return a copy with windows as wide as the longest example, rounded up to a multiple of ``step``."""
    longest = int(gathered.lengths.max(initial=1))
    width = min(-(-longest // step) * step, gathered.layout.max_seq_length)
    layout = replace(gathered.layout, max_seq_length=width)
    ids = np.ascontiguousarray(gathered.ids[:, :width])
    targets = {name: values[:, :width] for name, values in gathered.token_targets.items()}
    return replace(gathered, ids=ids, layout=layout, token_targets=targets)


def pad_rows(gathered: GatheredExamples, count: int) -> RowBatch:
    """Return a batch of ``count`` rows: the gathered examples, then rows of zeros with label -1 that fill it
    up.

    Behind each example the padding id of its tokeniser is written. The gathered arrays are changed in place.
    """
    layout = gathered.layout
    slot = np.arange(layout.max_seq_length, dtype=np.int32)
    # Boolean masks of shape (rows, S): cells with ids, cells of the second segment. masked: (rows, P), used
    # slots.
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
    """Return a batch of ``count`` packed rows: the gathered rows, then rows of zeros with label -1 that fill
    it up.

    slots: masked slots of a row. Raises ShardError if a row has more examples, ids or masked words than fit.
    """
    # row: the row of each example. number: its place in the row. starts: where its tokens begin in the row.
    lengths, row_ends = gathered.lengths, gathered.row_ends
    sizes = np.diff(row_ends, prepend=0)
    row = np.repeat(np.arange(gathered.rows), sizes)
    number = np.arange(len(gathered)) - (row_ends - sizes)[row]
    tokens, masks = _sum_rows(lengths, row_ends), _sum_rows(gathered.masks, row_ends)
    _check_row_sizes(gathered, sizes, tokens, masks, slots)
    before = np.cumsum(lengths) - lengths
    starts = before - (np.cumsum(tokens) - tokens)[row]  # from the start of the row
    place = np.arange(lengths.sum()) - np.repeat(before, lengths)
    # used, masked: cells to fill in the batch. own_ids, own_masks: cells to read in the examples' windows.
    # Both have equally many true cells in the same order, so _spread_values copies the values in one go.
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

    sizes, tokens, masks: examples, ids and masked words of each row. slots: masked slots of a row.
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
    """Return the sum of each row's values. ends: index of the value after each row."""
    totals = np.insert(np.cumsum(values, dtype=np.int64), 0, 0)
    return np.diff(totals[ends], prepend=0)


def _mark_used(sizes: Array, count: int, width: int) -> Array:
    """Return a boolean array (count, width) that is true in the first ``sizes[i]`` cells of row i."""
    padded = np.zeros(count, np.int64)
    padded[: len(sizes)] = sizes
    return np.arange(width) < padded[:, np.newaxis]


def _spread_values(values: Array, used: Array) -> Array:
    """Return an array of rows whose used cells have these values, one after the other. All other cells are
    zeros. used: True for cells to fill.
    """
    rows = np.zeros(used.shape, np.int32)
    rows[used] = values
    return rows
