"""The part of a weight that a worker holds."""

from typing import NamedTuple

from torch import Tensor


class Part(NamedTuple):
    """Rows of a weight, or of a moment (KIND/NAME), that this worker holds.

    shape: that of the whole; without dimensions it counts as one row. start: number of the first row.
    rows: the values themselves, in whose place others may be put; there may be none. writes: False where
    another worker writes the same rows into a checkpoint.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool
