"""The methods that make a plan, by name."""

from collections.abc import Callable

from bertdata.errors import SettingsError
from bertdata.packing.least_squares import pack_by_least_squares
from bertdata.packing.linear_program import pack_by_linear_program
from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.plan import Histogram, PackPlan

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
