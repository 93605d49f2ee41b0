"""Examples of a dataset by their numbers, as a list has them."""

from collections.abc import Sequence
from operator import index as whole
from typing import TYPE_CHECKING, Any, SupportsIndex

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.objectives import find_objective

if TYPE_CHECKING:
    from bertdata.dataset.random_access import RandomAccess


class ExamplesByNumber:
    """The examples as the objective's ``example_type``. Picklable.

    Nothing is opened before one is asked for.
    """

    def __init__(self, data: OpenedDataset, objective: str | None) -> None:
        self._data, self._objective = data, objective
        self._access: RandomAccess | None = None

    def __reduce__(self) -> tuple[type["ExamplesByNumber"], tuple[OpenedDataset, str | None]]:
        return ExamplesByNumber, (self._data, self._objective)

    def get(self, index: SupportsIndex | slice) -> Any:
        """The example of that number, below 0 counted from the end, or a list of those of a slice."""
        if isinstance(index, slice):
            return self.several(range(*index.indices(self._data.examples)))
        return self.several([whole(index)])[0]

    def several(self, numbers: Sequence[int]) -> list[Any]:
        """The examples of these numbers, in this order. IndexError for one that is not there."""
        size = self._data.examples
        for number in numbers:
            if not -size <= number < size:
                raise IndexError(f"example {number}, expected {-size} to {size - 1}")
        if not numbers:
            return []
        batch = self._opened().batch([number + size if number < 0 else number for number in numbers])
        return list(batch.examples())

    def _opened(self) -> "RandomAccess":
        if self._access is None:
            from bertdata.dataset.random_access import RandomAccess

            if self._objective is not None:
                find_objective(self._objective)  # this may be a new process
            self._access = RandomAccess(self._data)
        return self._access
