"""The description of a conversion that is sent to workers, and the description of a converted shard."""

from dataclasses import dataclass, field

from bertdata.dataset.manifest import InputEntry, ShardEntry
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.writer import Dataset
from bertdata.records import ShardLayout
from bertdata.shards.mds.index import ShardForm
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionJob:
    """The description of a conversion to another program's layout.

    It is pickled and sent to worker processes.

    source: the opened source dataset.
    dataset: the output dataset.
    names: for each new shard its file name. With length bins (one file for each range of lengths), the file
        names of all its bins.
    starts: index of the first example of each new shard, followed by the total number of examples.
    corpus: one manifest entry that stands for all inputs together.
    tokenizer: tokeniser of the source dataset.
    has_masks: True if the source's examples are masked.
    bin_size: width in token ids of the length bins that NVIDIA's loader LDDL uses. 0 means that there are no
        bins.
    form: columns, compression and hashes of MDS shards. None for other layouts.
    """

    source: OpenedDataset
    dataset: Dataset
    format: str
    layout: ShardLayout
    names: tuple[tuple[str, ...], ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    corpus: InputEntry
    tokenizer: TokenizerFile
    has_masks: bool
    bin_size: int = 0
    form: ShardForm | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertedShard:
    """A shard of the converted dataset, written by this run or by an earlier run.

    entries: manifest entries of the shard's files. There is one entry, or one for each length bin.
    """

    number: int
    entries: tuple[ShardEntry, ...]
    is_kept: bool = False

    @property
    def examples(self) -> int:
        """Number of examples in the shard, over all of its length bins."""
        return sum(entry.examples for entry in self.entries)

    @property
    def line(self) -> str:
        """Progress line that says whether the shard was written or kept."""
        bins = f" in {len(self.entries)} bins" if self.entries[1:] else ""
        made = "kept" if self.is_kept else "made"
        return f"{made} {self.entries[0].name} ({self.examples} examples{bins})"
