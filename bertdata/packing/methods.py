"""The methods that plan packed rows, by name. Also splits rows that could have too many masked positions."""

from collections.abc import Callable, Sequence

from bertdata.errors import SettingsError
from bertdata.packing.least_squares import pack_by_least_squares
from bertdata.packing.linear_program import pack_by_linear_program
from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, Lengths, PackPlan, make_plan

METHODS: dict[str, Callable[[Histogram, int], PackPlan]] = {
    "lp": pack_by_linear_program,
    "lpfhp": pack_longest_first,
    "nnls": pack_by_least_squares,
}


def plan_packs(histogram: Histogram, *, most: int, method: str = "lp") -> PackPlan:
    """Plan rows for all examples, with at most ``most`` examples per row.

    Raises SettingsError if the method is unknown or cannot handle the lengths.

    histogram: number of examples by length.
    method: name of the method, a key of METHODS. All methods except nnls give the same plan on every machine.
    """
    if method not in METHODS:
        raise SettingsError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    plan = METHODS[method](histogram, most)
    assert (plan.histogram() == histogram).all(), "a plan with a place for every example"
    assert plan.most_in_a_row <= most, plan.most_in_a_row
    return plan


def split_rows(plan: PackPlan, masks: Sequence[int], room: int | None) -> PackPlan:
    """Return the plan with rows split so that no row can have more than ``room`` masked positions.

    Raises SettingsError if a single example may have more than ``room`` masked positions.

    masks: largest number of masked positions of an example, by the example's length.
    room: most masked positions of a row. None leaves the plan unchanged.
    """
    if room is None:
        return plan
    found: dict[Lengths, int] = {}
    for lengths, rows in plan.rows_by_lengths:
        for part in _split_row(lengths, masks, room):
            found[part] = found.get(part, 0) + rows
    return make_plan(plan.max_seq_length, found)


def _split_row(lengths: Lengths, masks: Sequence[int], room: int) -> list[Lengths]:
    """Divide the lengths of a row among several rows, so that no row can have more than ``room`` masked
    positions.

    Each row takes the longest of the remaining lengths that still fit.
    """
    parts: list[Lengths] = []
    left = list(lengths)
    while left:
        if masks[left[-1]] > room:
            raise SettingsError(
                f"an example of {left[-1]} tokens may have {masks[left[-1]]} masked positions, but a row of "
                f"this layout has room for {room}; choose the layout flat"
            )
        # For example, with lengths [10, 20, 90], masks [2, 3, 14] and room 16, the rows are [10, 90] and
        # [20]: next to 90 only 10 has few enough masks.
        taken, used = [], 0
        for length in reversed(left):
            if used + masks[length] <= room:
                taken.append(length)
                used += int(masks[length])
        for length in taken:
            left.remove(length)
        parts.append(tuple(reversed(taken)))
    return parts
