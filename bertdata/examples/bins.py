"""Bins of examples of near equal lengths: bin = (ids - 1) // bin_size, as LDDL has it.

So bin b holds the examples of ``b * bin_size + 1`` to ``(b + 1) * bin_size`` ids.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from bertdata.records import ExampleBatch

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

Batch = TypeVar("Batch", bound=ExampleBatch)


def bin_count(max_seq_length: int, bin_size: int) -> int:
    """Number of bins that examples of up to max_seq_length ids have."""
    return -(-max_seq_length // bin_size)


def bin_names(stem: str, max_seq_length: int, bin_size: int) -> tuple[str, ...]:
    """Names of the bins' files without the container's ending. Without bins (0) the stem alone.

    ::

        part-00003, 128, 32  ->  part-00003.bin-00, part-00003.bin-01, part-00003.bin-02, part-00003.bin-03
    """
    if not bin_size:
        return (stem,)
    return tuple(f"{stem}.bin-{number:02}" for number in range(bin_count(max_seq_length, bin_size)))


def bins_of(lengths: "Array", bin_size: int) -> "Array":
    """The bin of each length."""
    return (lengths - 1) // bin_size


def cut_bins(batch: Batch, bin_size: int) -> Iterator[tuple[int, Batch]]:
    """The bins of a batch that have examples, ascending, each with its examples in their order."""
    import numpy as np

    from bertdata.examples.columns import arrays, lengths, take

    batch = arrays(batch)
    bins = bins_of(lengths(batch.ends), bin_size)
    for number in np.unique(bins).tolist():
        yield number, take(batch, np.flatnonzero(bins == number))
