"""Cuts between the shards of a packed dataset, names of the shards, and buckets of rows within them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array

BUCKET_POSITIONS = 1 << 22
"""Positions of the rows that a process holds at a time: about three bytes each, a few times over."""

ROWS_OF_A_SHARD = {"habana": 4480, "graphcore": 500_000}
"""Of the layouts whose own programs fix it."""


@dataclass(frozen=True)
class RowCuts:
    """Rows 0 to n cut into shards, and the shards into buckets of at most bucket_rows rows.

    starts: the first row of each shard, and n.
    """

    starts: tuple[int, ...]
    bucket_rows: int

    @cached_property
    def buckets(self) -> Array:
        """The first row of each bucket, and n."""
        inner = [
            np.arange(start, stop, self.bucket_rows)
            for start, stop in zip(self.starts, self.starts[1:], strict=False)
        ]
        return np.concatenate([*inner, self.starts[-1:]]).astype(np.int64)

    def buckets_of(self, shard: int) -> range:
        """The numbers of a shard's buckets."""
        first, last = np.searchsorted(self.buckets, self.starts[shard : shard + 2])
        return range(int(first), int(last))


def cut_rows(
    rows: int, max_seq_length: int, layout: str, num_shards: int | None, source_shards: int
) -> RowCuts:
    """The cuts of so many rows.

    num_shards: shards of nearly equal size; None: those of the layout's own program, or as many as the source
    has. SettingsError where there are fewer rows than shards.
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


def packed_shard_names(layout: str, format: str, shards: int) -> list[str]:
    """The names of a packed dataset's shards, those that the layout's users look for."""
    forms = {
        "habana": "mixed_strategies_part_{number}.{format}",
        "graphcore": "wiki_{number:03}.{format}",
        "nvidia": "part_{number:05}_of_{shards:05}.{format}",
    }
    form = forms.get(layout, "shard-{number:05}-of-{shards:05}.{format}")
    return [form.format(number=number, shards=shards, format=format) for number in range(shards)]
