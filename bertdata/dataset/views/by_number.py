"""Access to the examples of a dataset by index, as in a list."""

from collections.abc import Sequence
from operator import index as whole
from typing import TYPE_CHECKING, Any, SupportsIndex

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.objectives import find_objective

if TYPE_CHECKING:
    from bertdata.dataset.selection import ExampleAccess


class ExamplesByNumber:
    """The examples of a dataset by index, as objects of the objective's ``example_type``.

    Files are opened only when the first example is read. The object can be pickled.

    objective: a user's own objective as package.module:NAME, which is imported in each process. None for an
        objective that is part of bertdata.
    """

    def __init__(self, data: OpenedDataset, objective: str | None) -> None:
        self._data, self._objective = data, objective
        self._access: ExampleAccess | None = None

    def __reduce__(self) -> tuple[type["ExamplesByNumber"], tuple[OpenedDataset, str | None]]:
        return ExamplesByNumber, (self._data, self._objective)

    def get(self, index: SupportsIndex | slice) -> Any:
        """Return the example with this index. For a slice, return a list of examples.

        Negative indices count from the end.
        """
        if isinstance(index, slice):
            return self.get_several(range(*index.indices(self._data.examples)))
        return self.get_several([whole(index)])[0]

    def get_several(self, numbers: Sequence[int]) -> list[Any]:
        """Return the examples with these indices, in this order.

        Raises IndexError for an index out of range.
        """
        size = self._data.examples
        for number in numbers:
            if not -size <= number < size:
                raise IndexError(f"example {number}, expected {-size} to {size - 1}")
        if not numbers:
            return []
        batch = self._open_access().read_batch(
            [number + size if number < 0 else number for number in numbers]
        )
        return list(batch.examples())

    def _open_access(self) -> "ExampleAccess":
        if self._access is None:
            from bertdata.dataset.selection import open_access

            if self._objective is not None:
                # imports a user's own objective, which a new process has not imported yet
                find_objective(self._objective)
            self._access = open_access(self._data)
        return self._access
