"""Cut the rows of a packed dataset into shards and into buckets that fit into memory. Name the shards."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array

BUCKET_POSITIONS = 1 << 22
"""Number of positions (rows times row length) in a bucket. A bucket is a range of rows that a process has in
memory.

A position takes about three bytes, and a bucket is held a few times over while it is sorted.
"""

ROWS_PER_SHARD = {"habana": 4480, "graphcore": 500_000}
"""Number of rows in a shard, for the layouts whose original packer (Habana's or Graphcore's) fixes it."""


@dataclass(frozen=True)
class RowCuts:
    """Division of the rows 0 to n - 1 into shards. Each shard is further divided into buckets.

    starts: the first row of each shard, followed by n.
    bucket_rows: most rows in a bucket, which is a range of rows that a process has in memory.
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

    def find_buckets(self, shard: int) -> range:
        """Return the numbers of a shard's buckets."""
        first, last = np.searchsorted(self.buckets, self.starts[shard : shard + 2])
        return range(int(first), int(last))


def divide_rows(
    rows: int, max_seq_length: int, layout: str, num_shards: int | None, source_shards: int
) -> RowCuts:
    """Decide which packed rows belong to which shard.

    Raises SettingsError if there are fewer rows than shards.

    rows: number of packed rows.
    layout: name of the layout of packed rows.
    num_shards: number of shards, of nearly equal size. None means the fixed number of rows per shard that the
        layout has. If it has none, there are as many shards as in the source.
    source_shards: number of shards of the source.
    """
    size = ROWS_PER_SHARD.get(layout)
    if num_shards is not None and num_shards > rows:
        raise SettingsError(f"num_shards is {num_shards}, expected at most {rows}, the number of packed rows")
    if num_shards is None and size is not None:
        starts = [*range(0, rows, size), rows]
    else:
        shards = num_shards or min(source_shards, rows)
        starts = [rows * number // shards for number in range(shards + 1)]
    return RowCuts(starts=tuple(starts), bucket_rows=max(1, BUCKET_POSITIONS // max_seq_length))


def format_packed_shard_names(layout: str, format: str, shards: int) -> list[str]:
    """Return the names of the packed shards. They have the form that the trainer of this layout looks for."""
    forms = {
        "habana": "mixed_strategies_part_{number}.{format}",
        "graphcore": "wiki_{number:03}.{format}",
        "nvidia": "part_{number:05}_of_{shards:05}.{format}",
    }
    form = forms.get(layout, "shard-{number:05}-of-{shards:05}.{format}")
    return [form.format(number=number, shards=shards, format=format) for number in range(shards)]
