"""Rows of updates that grow, in the order that they have in updates of one size."""

from collections.abc import Iterator
from dataclasses import replace

from trainer.data.dealing import Deal, Dealer, OwnRows, Rows
from trainer.data.order import Position


def growing_rows(rows: Rows, dealer: Dealer, start: Position) -> Iterator[OwnRows]:
    """A worker's rows from the position on, of updates as large as the dealer's course says."""
    course, deal, update = dealer.course, dealer.deal, dealer.first_update
    assert course is not None
    while True:
        until = course.next_change(update)
        same = Deal(
            workers=deal.workers,
            rank=deal.rank,
            accumulation=course.micro_batches(update),
            batch_size=deal.batch_size,
            by_lengths=deal.by_lengths,
        )
        updates = dealer.updates if until is None else 1  # at a time
        for own in rows.find(replace(dealer, deal=same, updates=updates), start):
            yield own
            update, start = update + len(own.positions), own.positions[-1]
            if update == until:
                break
