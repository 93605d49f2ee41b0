"""The methods that make a plan, by name, and rows split that may have too many masked positions."""

from collections.abc import Callable, Sequence

from bertdata.errors import SettingsError
from bertdata.packing.least_squares import pack_by_least_squares
from bertdata.packing.linear_program import pack_by_linear_program
from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, plan_of

METHODS: dict[str, Callable[[Histogram, int], PackPlan]] = {
    "lp": pack_by_linear_program,
    "lpfhp": pack_longest_first,
    "nnls": pack_by_least_squares,
}


def plan_packs(histogram: Histogram, *, most: int, method: str = "lp") -> PackPlan:
    """The plan for all examples of the histogram, at most ``most`` a row.

    But for nnls it is the same on every machine. SettingsError for a method that there is
    not, or for lengths that it cannot do.
    """
    if method not in METHODS:
        raise SettingsError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    plan = METHODS[method](histogram, most)
    assert (plan.histogram() == histogram).all(), "a plan with a place for every example"
    assert plan.most_in_a_row <= most, plan.most_in_a_row
    return plan


def split_rows(plan: PackPlan, masks: Sequence[int], room: int | None) -> PackPlan:
    """The plan with rows of at most ``room`` masked positions. None: any number.

    masks: the most of an example, by its length. A row with too many loses examples, the shortest first,
    to a row of their own. SettingsError where one example alone may have too many.
    """
    if room is None:
        return plan
    found: dict[Lengths, int] = {}
    for lengths, rows in plan.rows_by_lengths:
        for part in _parts(lengths, masks, room):
            found[part] = found.get(part, 0) + rows
    return plan_of(plan.max_seq_length, found)


def _parts(lengths: Lengths, masks: Sequence[int], room: int) -> list[Lengths]:
    """The examples of a row as rows that fit. Each row takes the longest that are left, as many as fit."""
    parts: list[Lengths] = []
    left = list(lengths)
    while left:
        if masks[left[-1]] > room:
            raise SettingsError(
                f"an example of {left[-1]} tokens may have {masks[left[-1]]} masked positions, but a row of "
                f"this layout has room for {room}; choose the layout flat"
            )
        taken, used = [], 0
        for length in reversed(left):
            if used + masks[length] <= room:
                taken.append(length)
                used += int(masks[length])
        for length in taken:
            left.remove(length)
        parts.append(tuple(reversed(taken)))
    return parts
