"""Longest-pack-first histogram packing.

The algorithm is algorithm 1 of Krell et al. 2021, "Efficient sequence packing without cross-contamination".
"""

from collections import defaultdict

from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, make_plan


def pack_longest_first(histogram: Histogram, most: int) -> PackPlan:
    """Pack greedily, longest lengths first, into the open rows with the least room that suffices.

    most: largest number of examples in a row.
    If several examples of equal length fit into a row, they are added together. Equal rows are kept as a
    count, so the work grows with the number of lengths, not of examples.
    """
    max_seq_length = len(histogram) - 1
    finished: dict[Lengths, int] = defaultdict(int)
    open_rows: dict[int, list[tuple[Lengths, int]]] = {}  # by free positions, newest group last
    for length in range(max_seq_length, 0, -1):
        left = int(histogram[length])
        while left:
            # Take the newest group of rows with the least room that still holds this length, else start new
            # rows.
            room = min((room for room in open_rows if room >= length), default=None)
            before: Lengths = ()
            if room is None:
                room, rows = max_seq_length, left
            else:
                before, rows = open_rows[room].pop()
            # Compute how many examples of this length go into each row, and how many rows get them. Example:
            # length 3, left 7, before (5,), room 8, most 3, rows 10 -> repeats 2, taken 3, and 1 example is
            # left, which the next iteration adds to a single row.
            repeats = min(room // length, most - len(before), left)
            taken = min(rows, left // repeats)
            if before:
                _put_back_rows(open_rows, room, before, rows - taken)
            lengths = (length,) * repeats + before  # still ascending
            room -= repeats * length
            if room and len(lengths) < most:
                open_rows.setdefault(room, []).append((lengths, taken))
            else:
                finished[lengths] += taken
            left -= taken * repeats
    for groups in open_rows.values():
        for lengths, rows in groups:
            finished[lengths] += rows
    return make_plan(max_seq_length, finished)


def _put_back_rows(
    open_rows: dict[int, list[tuple[Lengths, int]]], room: int, lengths: Lengths, rows: int
) -> None:
    """Keep the unused rows of a group open. An empty list is removed, so that every key has a group."""
    if rows:
        open_rows[room].append((lengths, rows))
    elif not open_rows[room]:
        del open_rows[room]
