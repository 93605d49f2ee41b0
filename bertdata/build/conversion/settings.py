"""The settings of a conversion to another program's layout (its file format and division into shards)."""

from dataclasses import dataclass, replace
from typing import Any

from bertdata.config.dataset_settings import DatasetSettings, drop_file_settings, make_shuffle_settings
from bertdata.config.settings import require
from bertdata.examples.bins import count_bins
from bertdata.examples.objectives import find_plain_objective_name
from bertdata.records import ShardLayout
from bertdata.shards.containers import ARROW, FAIRSEQ, LDDL, MDS, NVIDIA_MLPERF
from bertdata.shards.fairseq import OBJECTIVE
from bertdata.shards.mds.compression import find_compression
from bertdata.shards.mds.hashes import check_hashes

TARGETS = (NVIDIA_MLPERF, LDDL, ARROW, FAIRSEQ, MDS)
"""Layouts that ``convert --to`` can write."""

SIZE_LIMIT = 1 << 26
"""Default size limit of an MDS shard in bytes. It is the same as MDSWriter's default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionSettings:
    """Settings that, together with the source dataset, decide the bytes of a converted dataset.

    to: name of the layout, one of TARGETS.
    num_shards: number of new shards. None keeps the source's number of shards.
    shuffled: True puts the examples in NVIDIA's permuted order.
    bin_size: width in token ids of LDDL's length bins, which are files for ranges of lengths. 0 means no
        bins.

    The following settings apply only to MDS:

    size_limit: largest size of a shard in bytes. None means SIZE_LIMIT.
    compression: name and level of a compression, such as ``zstd:9``. None means that shards are not
        compressed.
    hashes: names of the hash functions that are applied to each shard, in any order.
    with_len: True adds a column ``len`` with the number of ids of each example.
    """

    to: str
    num_shards: int | None = None
    shuffled: bool = False
    bin_size: int = 0
    size_limit: int | None = None
    compression: str | None = None
    hashes: tuple[str, ...] = ()
    with_len: bool = False

    def __post_init__(self) -> None:
        require(self.to in TARGETS, f"to is {self.to!r}, expected one of {', '.join(TARGETS)}")
        require(
            self.num_shards is not None or self.to != NVIDIA_MLPERF,
            f"{NVIDIA_MLPERF} needs num_shards; the published data sets have 2048 and 4320",
        )
        require(not self.shuffled or self.to == NVIDIA_MLPERF, f"shuffled goes with {NVIDIA_MLPERF}")
        require(
            self.to != FAIRSEQ or self.num_shards in (None, 1),
            f"num_shards is {self.num_shards}, expected none: {FAIRSEQ} has one file of all examples",
        )
        require(self.bin_size >= 0, f"bin_size is {self.bin_size}, expected 1 or more")
        require(not self.bin_size or self.to == LDDL, f"bin_size goes with {LDDL}")
        for name in ("size_limit", "compression", "hashes", "with_len"):
            flag = "len" if name == "with_len" else name
            require(not getattr(self, name) or self.to == MDS, f"{flag} goes with {MDS}")
        require(
            self.num_shards is None or self.to != MDS,
            f"num_shards does not go with {MDS}; size_limit cuts it",
        )
        require(
            self.size_limit is None or 1 <= self.size_limit < 1 << 32,
            f"size_limit is {self.size_limit}, expected 1 to {(1 << 32) - 1}",
        )
        check_hashes(self.hashes)
        if self.compression is not None:
            find_compression(self.compression)

    def check_bins(self, max_seq_length: int) -> None:
        """Raise SettingsError if a single length bin would hold examples of all lengths."""
        require(
            self.bin_size < max_seq_length,
            f"bin_size is {self.bin_size}, expected 1 to {max_seq_length - 1}, below the examples' longest",
        )

    def make_file_names(self, number: int, shards: int, layout: ShardLayout) -> tuple[str, ...]:
        """Return the file name of a shard, or the file names of all its length bins, as the target program
        expects.

        number: number of the shard, counted from 0.
        shards: number of all shards.
        """
        if self.to == MDS:
            ending = f".{find_compression(self.compression).ending}" if self.compression else ""
            return (f"shard.{number:05}.mds{ending}",)
        if self.to == NVIDIA_MLPERF:
            return (f"part_{number:05}_of_{shards:05}.hdf5",)
        if self.to == FAIRSEQ:
            return ("train.bin",)
        if self.to == ARROW:
            return (f"data-{number:05}-of-{shards:05}.arrow",)
        if not self.bin_size:
            return (f"part.{number}.parquet",)
        bins = count_bins(layout.max_seq_length, self.bin_size)
        return tuple(f"part.{number}.parquet_{which}" for which in range(bins))

    def make_output_settings(self, source: DatasetSettings, num_shards: int) -> DatasetSettings:
        """Return the dataset settings that the manifest of the converted dataset records.

        source: settings of the source dataset.
        """
        if self.to == MDS:
            objective = dict(source.objective)
            if "name" in objective:
                objective["name"] = find_plain_objective_name(objective["name"])
            container = {**self._make_mds_container(source), **make_shuffle_settings(num_shards)}
            return replace(source, objective=objective, container=container)
        found = {
            name: value for name, value in drop_file_settings(source.container).items() if name != "bin_size"
        }
        own: dict[str, Any] = {"remask": False, "format": self.to}
        if self.to == NVIDIA_MLPERF:
            own["shuffled"] = self.shuffled
        if self.bin_size:
            own["bin_size"] = self.bin_size
        if self.to == FAIRSEQ:
            source = replace(source, objective={**source.objective, "name": OBJECTIVE})
        return replace(source, container={**found, **own, **make_shuffle_settings(num_shards)})

    def _make_mds_container(self, source: DatasetSettings) -> dict[str, Any]:
        """Return the settings of the MDS file format that the manifest records.

        The padding id is copied from the source, because the content md5s of the shards depend on it.
        """
        own: dict[str, Any] = {"format": MDS, "size_limit": self.size_limit or SIZE_LIMIT}
        if (padding_id := source.container.get("padding_id")) is not None:
            own["padding_id"] = padding_id
        if self.compression is not None:
            own["compression"] = self.compression
        if self.hashes:
            own["hashes"] = sorted(set(self.hashes))
        if self.with_len:
            own["len"] = True
        return own
