"""Cut the rows of a packed dataset into shards and into buckets that fit into memory. Name the shards."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array

BUCKET_POSITIONS = 1 << 22
"""Number of positions (rows times row length) in a bucket, a range of rows that a process holds in memory.

A position takes about three bytes, and a bucket is held a few times over while it is sorted.
"""

ROWS_OF_A_SHARD = {"habana": 4480, "graphcore": 500_000}
"""Rows per shard for layouts whose original program fixes this number."""


@dataclass(frozen=True)
class RowCuts:
    """The cuts of rows 0 to n - 1 into shards, and of each shard into buckets of at most bucket_rows rows.

    starts: the first row of each shard, followed by n.
    """

    starts: tuple[int, ...]
    bucket_rows: int

    @cached_property
    def buckets(self) -> Array:
        """The first row of each bucket, followed by n."""
        inner = [
            np.arange(start, stop, self.bucket_rows)
            for start, stop in zip(self.starts, self.starts[1:], strict=False)
        ]
        return np.concatenate([*inner, self.starts[-1:]]).astype(np.int64)

    def buckets_of(self, shard: int) -> range:
        """Return the numbers of a shard's buckets."""
        first, last = np.searchsorted(self.buckets, self.starts[shard : shard + 2])
        return range(int(first), int(last))


def cut_rows(
    rows: int, max_seq_length: int, layout: str, num_shards: int | None, source_shards: int
) -> RowCuts:
    """Decide how many packed rows each shard gets.

    num_shards: number of shards, of nearly equal size. None takes the fixed number of rows per shard if the
    layout has one, else as many shards as the source has. SettingsError if there are fewer rows than shards.
    """
    size = ROWS_OF_A_SHARD.get(layout)
    if num_shards is not None and num_shards > rows:
        raise SettingsError(f"num_shards is {num_shards}, expected at most {rows}, the number of packed rows")
    if num_shards is None and size is not None:
        starts = [*range(0, rows, size), rows]
    else:
        shards = num_shards or min(source_shards, rows)
        starts = [rows * number // shards for number in range(shards + 1)]
    return RowCuts(starts=tuple(starts), bucket_rows=max(1, BUCKET_POSITIONS // max_seq_length))


def format_packed_shard_names(layout: str, format: str, shards: int) -> list[str]:
    """Return the shard names, in the form that the layout's trainer looks for."""
    forms = {
        "habana": "mixed_strategies_part_{number}.{format}",
        "graphcore": "wiki_{number:03}.{format}",
        "nvidia": "part_{number:05}_of_{shards:05}.{format}",
    }
    form = forms.get(layout, "shard-{number:05}-of-{shards:05}.{format}")
    return [form.format(number=number, shards=shards, format=format) for number in range(shards)]
