"""Graphcore's layout of packed rows: sequences from left to right without their [CLS], which are at the row's
end.

A sequence is an example in a row. The sequences [CLS a b] and [CLS c] in a row of 8 positions give the ids
``a b c 0 0 0 CLS CLS``. The [CLS] of sequence k, counted from 1, is at position -k. Labels and flags of
sequences are also stored from right to left.

Without a [CLS] in front, each masked position is one less than in Habana's layout, and position 0 can be
masked. In Habana's layout the position 0 marks the end of the masks, which is not possible here. Instead the
field ``packed_masked_lm_mask`` is 0 at unused places for masks.
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


class GraphcoreLayout:
    """Object that converts packed rows to the grids (an array per field) that Graphcore's trainer reads, and
    back.
    """

    name = "graphcore"

    def find_sizes(self, widths: Mapping[str, int]) -> dict[str, int]:
        sequences = widths["pair_labels"]
        return {
            "max_seq_length": widths["ids"],
            "max_predictions_per_seq": widths["originals"] - sequences + 1,
            "sequences_per_row": sequences,
        }

    def arrange_rows(self, packs: PackBatch, widths: Mapping[str, int], types: Mapping[str, Any]) -> Grids:
        examples: Any = packs.examples
        at = SequencePlaces.from_packs(packs)
        # The body of a sequence is everything after its [CLS]. Bodies fill the row from the left. The heads,
        # which are the [CLS], fill the row from the right.
        places = np.arange(len(examples.ids)) - np.repeat(at.starts, at.sizes)
        is_body = places > 0
        firsts = get_segment_lengths(examples)
        is_second = places >= np.repeat(firsts, at.sizes)
        body = {
            "ids": examples.ids[is_body],
            "numbers": np.repeat(at.numbers, at.sizes - 1),
            "segments": is_second[is_body],
            "places": places[is_body],
        }
        heads = {
            "ids": examples.ids[at.starts],
            "numbers": at.numbers,
            "segments": firsts == 0,
            "pair_labels": get_pair_labels(examples),
            "present": np.ones(len(at.rows), bool),
        }
        sizes = count_items_per_row(examples.ends, packs.ends) - compute_lengths(packs.ends)
        grids = {of: fill_grid(values, sizes, widths[of], types[of]) for of, values in body.items()}
        for of, values in heads.items():
            grid = grids.setdefault(of, np.zeros((len(packs), widths[of]), types[of]))
            grid[at.rows, widths[of] - at.numbers] = values
        # Masked positions count the ids of the bodies only. Subtract the [CLS] of the sequence and of all
        # sequences before it in the row.
        starts = at.starts - at.row_starts - at.numbers
        return {**grids, **arrange_masks(packs, starts, at.numbers, widths, types)}

    def read_rows(self, grids: Grids, batch_type: type[ExampleBatch], record: GridCheck) -> PackBatch:
        width, most = grids["ids"].shape[1], grids["present"].shape[1]
        # The number of flags at the row's end is its number of sequences. As many positions at the row's end
        # hold heads ([CLS]). All other positions that have a sequence number belong to bodies.
        counts = np.count_nonzero(grids["present"], axis=1)
        is_body = (grids["numbers"] != 0) & (np.arange(width) < width - counts[:, np.newaxis])
        is_there = np.arange(most) < counts[:, np.newaxis]
        body_sizes = count_cells_by_number(grids, is_body, counts, record)[is_there]
        body_ends, ends = np.cumsum(body_sizes), np.cumsum(body_sizes + 1)
        # Put a head ([CLS]) in front of each body. For example, body_sizes [2, 1] give sequences that end at
        # [3, 5], with heads at 0 and 3.
        heads = ends - body_sizes - 1
        is_head = np.zeros(int(ends[-1]) if len(ends) else 0, bool)
        is_head[heads] = True
        masked, starts = grids["mask_numbers"] != 0, body_ends - body_sizes - 1
        examples = make_pair_batch(
            batch_type,
            ids=_insert_heads(grids["ids"], is_body, is_there, is_head),
            ends=ends,
            segment_lengths=_count_zeros(_insert_heads(grids["segments"], is_body, is_there, is_head), ends),
            masks=read_masks(grids, masked, is_body.sum(axis=1), body_ends, starts, record),
            pair_labels=grids["pair_labels"][:, ::-1][is_there],
        )
        return PackBatch(examples=examples, ends=np.cumsum(counts))


def _insert_heads(grid: Array, is_body: Array, is_there: Array, is_head: Array) -> Array:
    """Return the values of all sequences, with the value of each [CLS] in front of its sequence.

    In the grid the values of the [CLS] are at the row's end.

    is_body: True for the cells of the grid that belong to the rest of a sequence.
    is_there: True for the sequences that a row has, of shape (rows, most sequences).
    is_head: True for the [CLS] among the returned values.
    """
    # The [CLS] of a row are stored from right to left. Reverse them to get the order of the sequences.
    values = np.zeros(len(is_head), grid.dtype)
    values[is_head] = grid[:, ::-1][:, : is_there.shape[1]][is_there]
    body = grid[is_body]
    values[~is_head] = body
    return values


def _count_zeros(values: Array, ends: Array) -> Array:
    """Return the number of zeros in each sequence.

    ends: for each sequence, the index after its last value.
    """
    return compute_lengths(np.concatenate([[0], np.cumsum(values == 0)])[ends])


GRAPHCORE = GraphcoreLayout()
