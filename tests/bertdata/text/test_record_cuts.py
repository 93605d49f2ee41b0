"""Documents dealt out to parts: whole, in order, as many to a part as fit."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bertdata.text.record_cuts import PartAssignment

SIZES = st.lists(st.integers(0, 12), max_size=40)


def plain_parts(sizes: list[int], limit: int) -> list[list[int]]:
    """The numbers of the documents of each part, one document after another."""
    parts: list[list[int]] = []
    held = 0
    for number, size in enumerate(sizes):
        if not size:
            continue
        if not parts or held + size > limit:
            parts.append([])
            held = 0
        parts[-1].append(number)
        held += size
    return parts


@given(SIZES, st.integers(1, 20), st.lists(st.integers(0, 40)))
def test_pieces_of_any_size_give_the_parts_of_one(sizes: list[int], limit: int, ends: list[int]) -> None:
    cuts, found = PartAssignment(limit), dict[int, list[int]]()
    places = sorted({0, *(end for end in ends if end < len(sizes)), len(sizes)})
    for start, stop in pairwise(places):
        for run in cuts.assign_documents(sizes[start:stop]):
            found.setdefault(run.part, []).extend(range(start + run.start, start + run.stop))
    assert list(found) == list(range(len(found)))
    assert list(found.values()) == plain_parts(sizes, limit)
