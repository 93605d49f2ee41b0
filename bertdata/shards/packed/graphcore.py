"""Graphcore's packed layout: sequences from left to right without their [CLS], which are at the row's end.

The sequences [CLS a b] and [CLS c] in a row of 8 positions give the ids ``a b c 0 0 0 CLS CLS``. The [CLS] of
sequence k (from 1) is in position -k. Labels and flags of sequences are counted from the end in the same way.

Without a [CLS] in front, each masked position is one less than in Habana's layout, and position 0 can be
masked. In Habana's layout position 0 marks the end of the masks, which is not possible here. Instead the
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
    fill_grid,
    number_counts,
    read_masks,
)
from bertdata.shards.packed.packs import PackBatch


class GraphcoreLayout:
    """Conversion of rows to and from the grids that Graphcore's trainer reads."""

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
        at = SequencePlaces.of(packs)
        # Body: everything after a [CLS], filled from the left. Heads: the [CLS], placed from the right.
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
        # A masked position in the row counts neither the [CLS] of its sequence nor those of sequences before.
        starts = at.starts - at.row_starts - at.numbers
        return {**grids, **arrange_masks(packs, starts, at.numbers, widths, types)}

    def read_rows(self, grids: Grids, batch_type: type[ExampleBatch], record: GridCheck) -> PackBatch:
        width, most = grids["ids"].shape[1], grids["present"].shape[1]
        # The flags at the row's end give its number of sequences. As many positions at the end hold
        # the heads. All other positions with a sequence number are body.
        counts = np.count_nonzero(grids["present"], axis=1)
        is_body = (grids["numbers"] != 0) & (np.arange(width) < width - counts[:, np.newaxis])
        is_there = np.arange(most) < counts[:, np.newaxis]
        body_sizes = number_counts(grids, is_body, counts, record)[is_there]
        body_ends, ends = np.cumsum(body_sizes), np.cumsum(body_sizes + 1)
        # body_sizes [2, 1] -> with a head ([CLS]) in front of each body, sequences end at [3, 5], heads at 0
        # and 3
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
    """Move the value of each sequence's [CLS] from the row's end to the front of the sequence.

    Returns the values of all sequences, one after the other.
    """
    # The heads ([CLS]) of a row are stored from right to left. Reverse them to get the order of the
    # sequences.
    values = np.zeros(len(is_head), grid.dtype)
    values[is_head] = grid[:, ::-1][:, : is_there.shape[1]][is_there]
    body = grid[is_body]
    values[~is_head] = body
    return values


def _count_zeros(values: Array, ends: Array) -> Array:
    """Return the number of zeros in each sequence."""
    return compute_lengths(np.concatenate([[0], np.cumsum(values == 0)])[ends])


GRAPHCORE = GraphcoreLayout()
