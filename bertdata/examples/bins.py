"""Divides examples into bins, which are ranges of similar length, with LDDL's rule: bin = (ids - 1) //
bin_size.

Bin b holds the examples with ``b * bin_size + 1`` to ``(b + 1) * bin_size`` ids.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from bertdata.records import ExampleBatch

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

Batch = TypeVar("Batch", bound=ExampleBatch)


def count_bins(max_seq_length: int, bin_size: int) -> int:
    """Return the number of length bins for examples of up to max_seq_length ids.

    bin_size: number of different lengths in a bin.
    """
    return -(-max_seq_length // bin_size)


def format_bin_names(stem: str, max_seq_length: int, bin_size: int) -> tuple[str, ...]:
    """Return the file name of each length bin, without file extension.

    If bin_size is 0, return only the stem.

    The numbers in this example are max_seq_length and bin_size:

    ::

        part-00003, 128, 32  ->  part-00003.bin-00, part-00003.bin-01, part-00003.bin-02, part-00003.bin-03
    """
    if not bin_size:
        return (stem,)
    return tuple(f"{stem}.bin-{number:02}" for number in range(count_bins(max_seq_length, bin_size)))


def find_bins(lengths: "Array", bin_size: int) -> "Array":
    """Return the number of the length bin for each length, counted from 0. A length is a number of ids."""
    return (lengths - 1) // bin_size


def divide_into_bins(batch: Batch, bin_size: int) -> Iterator[tuple[int, Batch]]:
    """Divide a batch into length bins.

    Yield (number of the bin, batch of its examples) for each bin with examples.

    Bins are yielded in ascending order. Within a bin the examples keep their order.
    """
    import numpy as np

    from bertdata.examples.columns import compute_lengths, convert_to_arrays, take_examples

    batch = convert_to_arrays(batch)
    bins = find_bins(compute_lengths(batch.ends), bin_size)
    for number in np.unique(bins).tolist():
        yield number, take_examples(batch, np.flatnonzero(bins == number))
