"""Dealers (``trainer.data``: they assign rows to workers) for the rows of one file, without a loader."""

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import Dealer, Order, Position


def dealer_by_lengths(workers: int, rank: int, micro_batches: int, lengths: Array) -> Dealer:
    """Return the dealer for all rows of one file. lengths: number of tokens in each row."""
    return Dealer(
        order=Order([("rows", len(lengths))], seed=0, open_files=1),
        lengths=lambda file: lengths,
        by_lengths=True,
        world_size=workers,
        rank=rank,
        micro_batches=micro_batches,
        batch_size=len(lengths) // micro_batches,
        seed=0,
        most_rows=1,
        ahead=0,
    )


def first_rows(dealer: Dealer) -> Array:
    """Return the row numbers that the worker gets in its first update, as (micro-batches, rows)."""
    parts = next(dealer.find(Position())).parts
    rows = np.concatenate([one.rows for one in parts])
    targets = np.concatenate([one.targets for one in parts])
    return rows[np.argsort(targets)].reshape(-1, dealer.batch_size)
