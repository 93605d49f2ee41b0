"""Habana's layout of packed rows: sequences from left to right, each with its [CLS] in front.

A sequence is an example in a row. Habana's PyTorch packer writes HDF5, and the TensorFlow version for MLPerf
writes TFRecord. The masks of a row end at the first masked position 0. As in the packer, a row has P + K
places for masks, and at least one of them is free (P: most masks of an example, K: most sequences of a row).

The sequences [CLS a b] and [CLS c] in a row of 8 positions give::

    ids       CLS a b CLS c 0 0 0
    numbers   1   1 1 2   2 0 0 0      number of the sequence, 0 as padding
    places    0   1 2 0   1 0 0 0      position in the sequence
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.groups import get_pair_labels, get_segment_lengths, make_pair_batch
from bertdata.records import ExampleBatch
from bertdata.shards.packed.check import count_items_per_row
from bertdata.shards.packed.grid import (
    GridCheck,
    Grids,
    SequencePlaces,
    arrange_masks,
    count_cells_by_number,
    fill_grid,
    read_masks,
)
from bertdata.shards.packed.packs import PackBatch


class HabanaLayout:
    """Object that converts packed rows to the grids (an array per field) that Habana's trainers read, and
    back.
    """

    name = "habana"

    def find_sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        sequences = widths["pair_labels"]
        return {
            "max_seq_length": widths["ids"],
            "max_predictions_per_seq": widths["originals"] - sequences,
            "sequences_per_row": sequences,
        }

    def arrange_rows(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        examples: Any = packs.examples
        at = SequencePlaces.from_packs(packs)
        places = np.arange(len(examples.ids)) - np.repeat(at.starts, at.sizes)
        tokens = {
            "ids": examples.ids,
            "numbers": np.repeat(at.numbers, at.sizes),
            "segments": places >= np.repeat(get_segment_lengths(examples), at.sizes),
            "places": places,
        }
        starts = at.starts - at.row_starts
        each = {
            "cls_places": starts,
            "pair_labels": get_pair_labels(examples),
            "present": np.ones(len(starts), bool),
        }
        row_ids, counts = count_items_per_row(examples.ends, packs.ends), compute_lengths(packs.ends)
        return {
            **{of: fill_grid(values, row_ids, widths[of], types[of]) for of, values in tokens.items()},
            **arrange_masks(packs, starts, at.numbers, widths, types),
            **{of: fill_grid(values, counts, widths[of], types[of]) for of, values in each.items()},
        }

    def read_rows(self, grids: Grids, batch_type: type[ExampleBatch], record: GridCheck) -> PackBatch:
        # Cells with a sequence number are used. Unused mask slots hold position 0, which is [CLS] and never
        # masked, so the masks of a row end at the first 0.
        used = grids["numbers"] != 0
        most = grids["pair_labels"].shape[1]
        # The file does not store how many sequences a row has. It is the row's highest sequence number.
        found = count_cells_by_number(grids, used, np.full(len(used), most), record)
        counts = np.where(found > 0, np.arange(1, most + 1), 0).max(axis=1)
        is_there = np.arange(most) < counts[:, np.newaxis]
        sizes = found[is_there]
        ends = np.cumsum(sizes)
        masked = np.logical_and.accumulate(grids["mask_places"] != 0, axis=1)
        id_counts = used.sum(axis=1)
        examples = make_pair_batch(
            batch_type,
            ids=grids["ids"][used],
            ends=ends,
            segment_lengths=sizes - _count_ones(grids["segments"][used], ends),
            masks=read_masks(grids, masked, id_counts, ends, ends - sizes, record),
            pair_labels=grids["pair_labels"][is_there],
        )
        return PackBatch(examples=examples, ends=np.cumsum(counts))


def _count_ones(values: Array, ends: Array) -> Array:
    """Return how many values of each sequence are not zero.

    ends: for each sequence, the index after its last value.
    """
    return compute_lengths(np.concatenate([[0], np.cumsum(values != 0)])[ends])


HABANA = HabanaLayout()
