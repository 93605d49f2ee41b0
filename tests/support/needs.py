"""The readable twin of a cache's decisions: plain lists of needs in place of forecasts and directories."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from trainer.data.order import Order, Position


class Need(NamedTuple):
    """A stretch of places of the order in which a file is needed."""

    file: int
    begin: int
    end: int


def list_needs(order: Order, epochs: int, *, whole: bool) -> list[Need]:
    """Return the needs of some epochs, found by asking the order for the file of every place.

    whole: a file that is read whole is needed only at its first place.
    """
    found = dict[tuple[int, int], list[int]]()
    for epoch in range(epochs):
        for part in order.find(Position(epoch), np.arange(order.examples)):
            places = part.targets + epoch * order.examples
            found.setdefault((epoch, part.file), []).extend(places.tolist())
    return [
        Need(file, min(places), min(places) if whole else max(places)) for (_, file), places in found.items()
    ]


def find_next_need(needs: Sequence[Need], file: int, place: int, after: int = 0) -> int | None:
    """Return the place of the file's first need that is not over. Workers may be ``after`` places behind."""
    return min(
        (need.begin for need in needs if need.file == file and need.end + after >= place), default=None
    )


def choose_dropped(
    sizes: Mapping[int, int], next_needs: Mapping[int, int], missing: int, kept: Collection[int]
) -> list[int] | None:
    """Return the files to drop, one after the other the one that is needed latest, until there is room.

    None if dropping all of them would not give enough room. Then nothing is dropped.
    sizes: bytes of each file in the cache.
    missing: bytes of which there must be room.
    kept: files that may not be dropped.
    """
    dropped = list[int]()
    while missing > 0:
        left = [file for file in sizes if file not in kept and file not in dropped]
        if not left:
            return None
        latest = max(left, key=lambda file: next_needs[file])
        dropped.append(latest)
        missing -= sizes[latest]
    return dropped


def count_least_fetches(wanted: Sequence[int], room: int) -> int:
    """Return the least number of fetches with which files can be read in this order, by trying everything.

    wanted: the files that are read, one after the other.
    room: number of files for which the cache has room.
    """

    @cache
    def count(place: int, held: frozenset[int]) -> int:
        if place == len(wanted):
            return 0
        file = wanted[place]
        if file in held:
            return count(place + 1, held)
        if len(held) < room:
            return 1 + count(place + 1, held | {file})
        return 1 + min(count(place + 1, held - {dropped} | {file}) for dropped in held)

    return count(0, frozenset())
