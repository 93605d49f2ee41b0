"""Packing of a few thousand examples into rows, by best fit."""

from bisect import bisect_left, insort

import numpy as np

from bertdata.examples.columns import Array


def pack_best_fit(lengths: Array, room: int, most: int) -> Array:
    """The row of each example: the longest first, each to the row with the least room that holds it.

    room: tokens of a row; no length is larger. most: examples of a row. Of equal lengths the earlier example
    goes first, of rows with equal room the one that was changed last; a new row where none has room. Rows are
    numbered as they are begun. (Best-fit decreasing, Johnson 1973.)
    """
    tokens = lengths.tolist()
    rows = [0] * len(tokens)
    sizes = list[int]()  # examples of each row
    # The rows with so much room, the one that was changed last at the end.
    by_room: list[list[int]] = [[] for _ in range(room + 1)]
    rooms = list[int]()  # those that some row has, ascending
    for example in np.argsort(-lengths.astype(np.int64), kind="stable").tolist():
        length = tokens[example]
        found = bisect_left(rooms, length)
        if found < len(rooms):
            left = rooms[found]
            row = by_room[left].pop()
            if not by_room[left]:
                del rooms[found]
        else:
            left, row = room, len(sizes)
            sizes.append(0)
        rows[example] = row
        sizes[row] += 1
        left -= length
        if left and sizes[row] < most:
            if not by_room[left]:
                insort(rooms, left)
            by_room[left].append(row)
    return np.array(rows, np.int64)
