"""Longest-pack-first histogram packing (Krell et al. 2021, "Efficient sequence packing without
cross-contamination", algorithm 1)."""

from collections import defaultdict

from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, plan_of


def pack_longest_first(histogram: Histogram, most: int) -> PackPlan:
    """Each length, from the longest on, goes to the rows with the least room that holds it, at most ``most``
    a row.

    Where several of one length fit into a row, they go there together.
    """
    max_seq_length = len(histogram) - 1
    finished: dict[Lengths, int] = defaultdict(int)
    open_rows: dict[int, list[tuple[Lengths, int]]] = {}  # by the room that is left, the newest last
    for length in range(max_seq_length, 0, -1):
        left = int(histogram[length])
        while left:
            room = min((room for room in open_rows if room >= length), default=None)
            before: Lengths = ()
            if room is None:
                room, rows = max_seq_length, left
            else:
                before, rows = open_rows[room].pop()
            repeats = min(room // length, most - len(before), left)
            taken = min(rows, left // repeats)
            if before:
                _put_back(open_rows, room, before, rows - taken)
            lengths = (length,) * repeats + before  # ascending: what was there before is no shorter
            room -= repeats * length
            if room and len(lengths) < most:
                open_rows.setdefault(room, []).append((lengths, taken))
            else:
                finished[lengths] += taken
            left -= taken * repeats
    for groups in open_rows.values():
        for lengths, rows in groups:
            finished[lengths] += rows
    return plan_of(max_seq_length, finished)


def _put_back(
    open_rows: dict[int, list[tuple[Lengths, int]]], room: int, lengths: Lengths, rows: int
) -> None:
    """Keep the rows that were not used. No empty list is left."""
    if rows:
        open_rows[room].append((lengths, rows))
    elif not open_rows[room]:
        del open_rows[room]
