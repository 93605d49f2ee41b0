"""Dealers of no rows, to see among which rows of an update a worker's own are."""

import numpy as np

from trainer.data.dealing import Dealer
from trainer.data.order import Order


def dealer_by_lengths(workers: int, rank: int, micro_batches: int, batch_size: int) -> Dealer:
    """The dealer of updates of so many micro-batches over all workers."""
    return Dealer(
        order=Order([], seed=0, open_files=1),
        lengths=lambda file: np.zeros(0, np.int64),
        by_lengths=True,
        workers=workers,
        rank=rank,
        micro_batches=micro_batches,
        batch_size=batch_size,
        seed=0,
        most_rows=1,
        ahead=0,
    )
