"""A conversion to be done (Job), and a converted shard."""

from dataclasses import dataclass, field

from bertdata.dataset.manifest import InputEntry, ShardEntry
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.writer import Dataset
from bertdata.records import ShardLayout
from bertdata.shards.mds.index import ShardForm
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A conversion to be done. Instances are pickled and sent to workers.

    source: the opened source dataset.
    dataset: the output dataset.
    names: for each shard its file name, or with bins the file names of all its bins.
    starts: index of each shard's first example, then the number of all examples.
    corpus: one manifest entry for all inputs together.
    tokenizer: tokeniser of the source.
    has_masks: whether the source's examples are masked.
    bin_size: width of LDDL's length bins in ids. 0 means no bins.
    form: format of MDS shards. None for other layouts.
    """

    source: OpenedDataset
    dataset: Dataset
    format: str
    layout: ShardLayout
    names: tuple[tuple[str, ...], ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    corpus: InputEntry
    tokenizer: TokenizerFile
    has_masks: bool = True
    bin_size: int = 0
    form: ShardForm | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertedShard:
    """A shard that was written now or by an earlier run.

    entries: one manifest entry, or one per length bin.
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
