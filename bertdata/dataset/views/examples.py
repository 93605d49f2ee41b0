"""Iteration over the examples of a dataset, or over a range of them."""

from collections.abc import Iterator
from typing import Any

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective


def iterate_examples(data: OpenedDataset, numbers: range, objective: str | None) -> Iterator[Any]:
    """Yield the examples with these numbers, as objects of the objective's ``example_type``.

    objective: a user's own objective as package.module:NAME. It is imported first, because this may be a new
        process. None for an objective that is part of bertdata.
    """
    if objective is not None:
        find_objective(objective)
    for batch in data.read_range(numbers):
        yield from batch.examples()


def split_numbers(examples: int, part: int, parts: int) -> range:
    """Divide the numbers of examples evenly into ranges and return one of the ranges.

    examples: number of examples.
    part: index of the range to return, from 0.
    parts: number of ranges.
    """
    return range(examples * part // parts, examples * (part + 1) // parts)


def check_rank(rank: int, world: int) -> None:
    """Raise SettingsError unless 0 <= rank < world, where world is the number of processes."""
    if not 0 <= rank < world:
        raise SettingsError(f"rank is {rank} of world {world}, expected 0 to world - 1")
