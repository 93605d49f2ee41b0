"""Habana's layout: sequences left to right, each with its [CLS] at its head.

As its packer for PyTorch writes HDF5, and MLPerf's variant for TensorFlow TFRecords. The first masked
position 0 ends a row's masks; one slot of P + K at least stays free, as in the packer.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bertdata.examples.columns import Array, lengths
from bertdata.examples.groups import pair_batch, pair_labels, segment_lengths
from bertdata.records import ExampleBatch
from bertdata.shards.packed.check import row_sizes
from bertdata.shards.packed.grid import (
    GridCheck,
    Grids,
    SequencePlaces,
    arrange_masks,
    fill,
    number_counts,
    read_masks,
)
from bertdata.shards.packed.packs import PackBatch


class HabanaLayout:
    """Arranges rows as Habana's trainers read them."""

    name = "habana"

    def sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        sequences = widths["pair_labels"]
        return {
            "max_seq_length": widths["ids"],
            "max_predictions_per_seq": widths["originals"] - sequences,
            "sequences_per_row": sequences,
        }

    def arrange(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        examples: Any = packs.examples
        at = SequencePlaces.of(packs)
        places = np.arange(len(examples.ids)) - np.repeat(at.starts, at.sizes)
        tokens = {
            "ids": examples.ids,
            "numbers": np.repeat(at.numbers, at.sizes),
            "segments": places >= np.repeat(segment_lengths(examples), at.sizes),
            "places": places,
        }
        starts = at.starts - at.row_starts
        each = {
            "cls_places": starts,
            "pair_labels": pair_labels(examples),
            "present": np.ones(len(starts), bool),
        }
        row_ids, counts = row_sizes(examples.ends, packs.ends), lengths(packs.ends)
        return {
            **{of: fill(values, row_ids, widths[of], types[of]) for of, values in tokens.items()},
            **arrange_masks(packs, starts, at.numbers, widths, types),
            **{of: fill(values, counts, widths[of], types[of]) for of, values in each.items()},
        }

    def sequences(self, grids: Grids, batch_type: type[ExampleBatch], record: GridCheck) -> PackBatch:
        used = grids["numbers"] != 0
        most = grids["pair_labels"].shape[1]
        found = number_counts(grids, used, np.full(len(used), most), record)
        counts = np.where(found > 0, np.arange(1, most + 1), 0).max(axis=1)
        is_there = np.arange(most) < counts[:, np.newaxis]
        sizes = found[is_there]
        ends = np.cumsum(sizes)
        masked = np.logical_and.accumulate(grids["mask_places"] != 0, axis=1)
        id_counts = used.sum(axis=1)
        examples = pair_batch(
            batch_type,
            ids=grids["ids"][used],
            ends=ends,
            segment_lengths=sizes - _ones_of(grids["segments"][used], ends),
            masks=read_masks(grids, masked, id_counts, ends, ends - sizes, record),
            pair_labels=grids["pair_labels"][is_there],
        )
        return PackBatch(examples=examples, ends=np.cumsum(counts))


def _ones_of(values: Array, ends: Array) -> Array:
    """The values other than 0 of each sequence."""
    return lengths(np.concatenate([[0], np.cumsum(values != 0)])[ends])


HABANA = HabanaLayout()
