"""Divides examples into bins of similar length, with LDDL's rule: bin = (ids - 1) // bin_size.

Bin b holds the examples of ``b * bin_size + 1`` to ``(b + 1) * bin_size`` ids.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from bertdata.records import ExampleBatch

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

Batch = TypeVar("Batch", bound=ExampleBatch)


def count_bins(max_seq_length: int, bin_size: int) -> int:
    """Return the number of length bins for examples of up to max_seq_length ids. bin_size: ids per bin."""
    return -(-max_seq_length // bin_size)


def format_bin_names(stem: str, max_seq_length: int, bin_size: int) -> tuple[str, ...]:
    """Return the names of the bins' files without file extension. Without bins (bin_size 0), just the stem.

    ::

        part-00003, 128, 32  ->  part-00003.bin-00, part-00003.bin-01, part-00003.bin-02, part-00003.bin-03
    """
    if not bin_size:
        return (stem,)
    return tuple(f"{stem}.bin-{number:02}" for number in range(count_bins(max_seq_length, bin_size)))


def find_bins(lengths: "Array", bin_size: int) -> "Array":
    """Return the number of the length bin, from 0, for each length in ids."""
    return (lengths - 1) // bin_size


def cut_bins(batch: Batch, bin_size: int) -> Iterator[tuple[int, Batch]]:
    """Yield the number of each bin that has examples in the batch, ascending, with a batch of these examples
    in their order.
    """
    import numpy as np

    from bertdata.examples.columns import compute_lengths, convert_to_arrays, take_examples

    batch = convert_to_arrays(batch)
    bins = find_bins(compute_lengths(batch.ends), bin_size)
    for number in np.unique(bins).tolist():
        yield number, take_examples(batch, np.flatnonzero(bins == number))
