"""Dealers of the rows of one file, without a loader."""

import numpy as np

from bertdata.examples.columns import Array
from trainer.data.order import Dealer, Order, Position


def dealer_by_lengths(workers: int, rank: int, micro_batches: int, lengths: Array) -> Dealer:
    """The dealer of updates of all rows of a file. lengths: the tokens of each row."""
    return Dealer(
        order=Order([("rows", len(lengths))], seed=0, open_files=1),
        lengths=lambda file: lengths,
        by_lengths=True,
        workers=workers,
        rank=rank,
        micro_batches=micro_batches,
        batch_size=len(lengths) // micro_batches,
        seed=0,
        most_rows=1,
        ahead=0,
    )


def first_rows(dealer: Dealer) -> Array:
    """(micro-batches, rows): those of the worker in its first update."""
    parts = next(dealer.find(Position())).parts
    rows = np.concatenate([one.rows for one in parts])
    targets = np.concatenate([one.targets for one in parts])
    return rows[np.argsort(targets)].reshape(-1, dealer.batch_size)
