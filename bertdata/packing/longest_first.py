"""Plan packed rows greedily, with the longest examples first.

This is algorithm 1 of Krell et al. 2021, "Efficient sequence packing without cross-contamination", called
longest-pack-first histogram packing.
"""

from collections import defaultdict

from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, make_plan


def pack_longest_first(histogram: Histogram, most: int) -> PackPlan:
    """Plan packed rows greedily. The longest examples come first.

    Each example goes to the open row with the least room that is sufficient. If several examples of equal
    length fit into a row, they are added together. Equal rows are only counted, so the work grows with the
    number of lengths, not with the number of examples.

    histogram: number of examples by length.
    most: most examples in a row.
    """
    max_seq_length = len(histogram) - 1
    finished: dict[Lengths, int] = defaultdict(int)
    # groups of equal rows by their free positions, the newest group last
    open_rows: dict[int, list[tuple[Lengths, int]]] = {}
    for length in range(max_seq_length, 0, -1):
        left = int(histogram[length])
        while left:
            # Of the rows that can still hold this length, take the newest group of those with the least room.
            # If there are none, start new rows.
            room = min((room for room in open_rows if room >= length), default=None)
            before: Lengths = ()
            if room is None:
                room, rows = max_seq_length, left
            else:
                before, rows = open_rows[room].pop()
            # Compute how many examples of this length go into each row, and how many rows get them. For
            # example, with length 3, left 7, before (5,), room 8, most 3 and rows 10, repeats is 2 and taken
            # is 3. The remaining example is added to a single row in the next iteration.
            repeats = min(room // length, most - len(before), left)
            taken = min(rows, left // repeats)
            if before:
                _put_back_rows(open_rows, room, before, rows - taken)
            # The lengths still ascend, because lengths are added from the longest to the shortest.
            lengths = (length,) * repeats + before
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
    """Put the unused rows of a group back among the open rows.

    If none are left, and no other open row has this room, remove the list for this room.
    """
    if rows:
        open_rows[room].append((lengths, rows))
    elif not open_rows[room]:
        del open_rows[room]
