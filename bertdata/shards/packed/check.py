"""Check packed rows: their sizes, and the rules that hold for their examples.

In this module, an example in a row is called a sequence.
"""

from dataclasses import dataclass

import numpy as np

from bertdata.errors import SettingsError, ShardError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.groups import find_mask_names, get_masks
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout
from bertdata.shards.packed.packs import PackBatch
from bertdata.shards.rows import RecordCheck, check_batch, check_layout

MAX_SEQUENCES = (1 << 15) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceCheck(RecordCheck):
    """Object that checks the sequences in packed rows.

    Its errors name the row, and the number of the sequence in the row.

    ends: for each row, the number of sequences in the batch up to its end.
    """

    ends: Array

    def error(self, index: int, problem: str) -> ShardError:
        row = int(np.searchsorted(self.ends, index, side="right"))
        start = int(self.ends[row - 1]) if row else 0
        return ShardError(f"{self.name}: record {self.first + row}: sequence {index - start + 1}: {problem}")


def check_packs(
    packs: PackBatch,
    layout: ShardLayout,
    record: RecordCheck,
    *,
    lowest_position: int = 0,
    most_masks: int | None = None,
) -> None:
    """Raise ShardError for the first row that does not fit the layout, or that has a faulty sequence.

    record: names the shard and the row in the error.
    lowest_position: the lowest position that may be masked.
    most_masks: most masked positions in a row. None allows any number.
    """
    examples = packs.examples
    sequences = compute_lengths(packs.ends)
    most = layout.sequences_per_row
    record.refuse(
        (sequences < 1) | (sequences > most), lambda i: f"{sequences[i]} sequences, expected 1 to {most}"
    )
    # The rules for single examples hold for sequences too. With SequenceCheck, errors name the row and the
    # sequence.
    sequence = SequenceCheck(name=record.name, first=record.first, ends=packs.ends)
    lowest = {find_mask_names(type(examples)).places: lowest_position} if lowest_position else {}
    check_batch(examples, layout, sequence, lowest)
    ids = count_items_per_row(examples.ends, packs.ends)
    limit = layout.max_seq_length
    record.refuse(ids > limit, lambda i: f"{ids[i]} ids, expected at most {limit}")
    if most_masks is not None:
        masks = count_items_per_row(get_masks(examples).ends, packs.ends)
        record.refuse(
            masks > most_masks, lambda i: f"{masks[i]} masked positions, expected at most {most_masks}"
        )


def check_largest_id(packs: PackBatch, largest: int, record: RecordCheck) -> None:
    """Raise ShardError for the first row with an id above ``largest``, the largest number that the file can
    store.
    """
    examples, last = packs.examples, np.asarray(packs.ends, np.int64) - 1
    for column in examples.columns():
        if column.item == "id" and column.ends is not None:
            row_ends = np.asarray(getattr(examples, column.ends))[last]
            _refuse_larger(getattr(examples, column.name), row_ends, largest, record)


def _refuse_larger(ids: Array, row_ends: Array, largest: int, record: RecordCheck) -> None:
    record.refuse_items(
        ids > largest, row_ends, lambda item: f"id {ids[item]}, expected 0 to {largest} in this container"
    )


def count_items_per_row(ends: Array, row_ends: Array) -> Array:
    """Return the number of items in each row.

    ends: for each sequence, the number of items in the batch up to its end.
    row_ends: for each row, the number of sequences in the batch up to its end.
    """
    return compute_lengths(np.concatenate([np.zeros(1, np.int64), ends])[row_ends])


def check_packed_layout(layout: ShardLayout) -> None:
    """Raise SettingsError if packed rows cannot have the sizes of this layout."""
    if layout.remask:
        raise SettingsError("remask: packed rows hold examples in their usual order")
    most = find_max_sequences(layout)
    if not 1 <= layout.sequences_per_row <= most:
        raise SettingsError(f"sequences_per_row is {layout.sequences_per_row}, expected 1 to {most}")


def check_row_sizes(layout: ShardLayout, name: str) -> None:
    """Raise ShardError if packed rows cannot have the sizes that a file states. ``name`` is the file."""
    sizes = find_objective(layout.objective).batch_type.sizes()
    check_layout(layout, name, [what for what in sizes if layout.size(what)])
    most = find_max_sequences(layout)
    if not 1 <= layout.sequences_per_row <= most:
        raise ShardError(f"{name}: sequences_per_row is {layout.sequences_per_row}, expected 1 to {most}")


def find_max_sequences(layout: ShardLayout) -> int:
    """Return the largest number of sequences that a row can hold.

    Each sequence has at least one id, and the number of a sequence must fit into 15 bits.
    """
    return min(layout.max_seq_length, MAX_SEQUENCES)
