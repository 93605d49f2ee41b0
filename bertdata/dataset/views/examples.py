"""The examples of a dataset one by one, or those of one part of it."""

from collections.abc import Iterator
from typing import Any

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective


def examples_of(data: OpenedDataset, numbers: range, objective: str | None) -> Iterator[Any]:
    """The examples whose numbers are in the range, as the objective's ``example_type``.

    objective: one of somebody's own, loaded first: this may be a new process.
    """
    if objective is not None:
        find_objective(objective)
    for batch in data.run(numbers):
        yield from batch.examples()


def numbers_of(examples: int, part: int, parts: int) -> range:
    """The numbers of one of ``parts`` runs of examples, whose lengths differ by one at most."""
    return range(examples * part // parts, examples * (part + 1) // parts)


def check_rank(rank: int, world: int) -> None:
    """SettingsError unless 0 <= rank < world."""
    if not 0 <= rank < world:
        raise SettingsError(f"rank is {rank} of world {world}, expected 0 to world - 1")
