"""Settings of a dataset in another program's layout."""

from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.dataset_settings import DatasetSettings, shuffled_into, without_padding
from bertdata.config.settings import check
from bertdata.examples.bins import bin_count
from bertdata.records import ShardLayout
from bertdata.shards.containers import ARROW, FAIRSEQ, LDDL, NVIDIA_MLPERF
from bertdata.shards.fairseq import OBJECTIVE

TARGETS = (NVIDIA_MLPERF, LDDL, ARROW, FAIRSEQ)
"""The layouts that ``convert --to`` writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionSettings:
    """What, besides the source, decides the bytes of a converted dataset.

    to: one of TARGETS; num_shards: None: as many as the source has; shuffled: by NVIDIA's permutation;
    bin_size: ids of LDDL's bins, 0: no bins.
    """

    to: str
    num_shards: int | None = None
    shuffled: bool = False
    bin_size: int = 0

    def __post_init__(self) -> None:
        check(self.to in TARGETS, f"to is {self.to!r}, expected one of {', '.join(TARGETS)}")
        check(
            self.num_shards is not None or self.to != NVIDIA_MLPERF,
            f"{NVIDIA_MLPERF} needs num_shards; the published data sets have 2048 and 4320",
        )
        check(not self.shuffled or self.to == NVIDIA_MLPERF, f"shuffled goes with {NVIDIA_MLPERF}")
        check(
            self.to != FAIRSEQ or self.num_shards in (None, 1),
            f"num_shards is {self.num_shards}, expected none: {FAIRSEQ} has one file of all examples",
        )
        check(self.bin_size >= 0, f"bin_size is {self.bin_size}, expected 1 or more")
        check(not self.bin_size or self.to == LDDL, f"bin_size goes with {LDDL}")

    def check_bins(self, max_seq_length: int) -> None:
        """SettingsError for bins that do not cut examples of up to max_seq_length ids."""
        check(
            self.bin_size < max_seq_length,
            f"bin_size is {self.bin_size}, expected 1 to {max_seq_length - 1}, below the examples' longest",
        )

    def names(self, number: int, shards: int, layout: ShardLayout) -> tuple[str, ...]:
        """The file name of a shard, or that of each of its bins, as the layout's programs look for them."""
        if self.to == NVIDIA_MLPERF:
            return (f"part_{number:05}_of_{shards:05}.hdf5",)
        if self.to == FAIRSEQ:
            return ("train.bin",)
        if self.to == ARROW:
            return (f"data-{number:05}-of-{shards:05}.arrow",)
        if not self.bin_size:
            return (f"part.{number}.parquet",)
        bins = bin_count(layout.max_seq_length, self.bin_size)
        return tuple(f"part.{number}.parquet_{which}" for which in range(bins))

    def of_dataset(self, source: DatasetSettings, num_shards: int) -> DatasetSettings:
        """The settings in the manifest of so many shards, from the source's."""
        found = {
            name: value for name, value in without_padding(source.container).items() if name != "bin_size"
        }
        own: dict[str, Any] = {"remask": False, "format": self.to}
        if self.to == NVIDIA_MLPERF:
            own["shuffled"] = self.shuffled
        if self.bin_size:
            own["bin_size"] = self.bin_size
        if self.to == FAIRSEQ:
            source = replace(source, objective={**source.objective, "name": OBJECTIVE})
        return replace(source, container={**found, **own, **shuffled_into(num_shards)})
