"""Iterate over the examples of a dataset, or of a part of it."""

from collections.abc import Iterator
from typing import Any

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective


def iterate_examples(data: OpenedDataset, numbers: range, objective: str | None) -> Iterator[Any]:
    """Yield the examples with these numbers as objects of the objective's ``example_type``.

    objective: a user's objective as package.module:NAME, loaded first since this may be a new process. None
    for a built-in objective.
    """
    if objective is not None:
        find_objective(objective)
    for batch in data.read_range(numbers):
        yield from batch.examples()


def split_numbers(examples: int, part: int, parts: int) -> range:
    """Divide the example numbers evenly into ``parts`` ranges.

    Return the range with number ``part``, counted from 0.
    """
    return range(examples * part // parts, examples * (part + 1) // parts)


def check_rank(rank: int, world: int) -> None:
    """Raise SettingsError unless 0 <= rank < world."""
    if not 0 <= rank < world:
        raise SettingsError(f"rank is {rank} of world {world}, expected 0 to world - 1")
