"""Examples that were made but not yet written. A C++ kernel or a Python list holds them."""

from collections.abc import Sequence
from typing import Any

from bertdata.examples.groups import MASKS, find_mask_columns, has_group
from bertdata.records import ExampleBatch


class KernelExamples:
    """Examples that a C++ kernel has made and holds.

    To save memory, the kernel stores an example as ranges of the documents' ids and its masks. ``batch``
    copies the ids.
    """

    def __init__(self, made: Any, batch_type: type[ExampleBatch]) -> None:
        self._made, self._batch_type = made, batch_type
        self._names = [column.name for column in batch_type.columns()]

    def __len__(self) -> int:
        return len(self._made)

    @property
    def tokens(self) -> int:
        return int(self._made.tokens)

    @property
    def masked(self) -> int:
        return int(self._made.masked)

    @property
    def lost(self) -> int:
        return int(self._made.lost)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        columns = self._made.batch(start, stop, step)
        return self._batch_type(**dict(zip(self._names, columns, strict=True)))


class ListedExamples:
    """Examples that were made in pure Python, in a list.

    wide: True if ids need 32 bits.
    lost: number of ids of the text that are in no example. None if they were not counted.
    """

    def __init__(
        self, made: Sequence[Any], batch_type: type[ExampleBatch], *, wide: bool, lost: int | None = None
    ) -> None:
        self._made, self._batch_type, self._wide = made, batch_type, wide
        self.lost = lost

    def __len__(self) -> int:
        return len(self._made)

    @property
    def tokens(self) -> int:
        return sum(len(example.ids) for example in self._made)

    @property
    def masked(self) -> int:
        if not has_group(self._batch_type, MASKS):
            return 0
        places = find_mask_columns(self._batch_type).places.one
        return sum(len(getattr(example, places)) for example in self._made)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        return self._batch_type.of(self._made[start:stop:step], wide=self._wide)
