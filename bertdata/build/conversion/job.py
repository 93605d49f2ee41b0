"""A converted dataset to be made, and its shards that are made."""

from dataclasses import dataclass, field

from bertdata.dataset.manifest import InputEntry, ShardEntry
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.writer import Dataset
from bertdata.records import ShardLayout
from bertdata.shards.mds.index import ShardForm
from bertdata.tokens.files import TokenizerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A converted dataset to be made. Picklable, travels to workers.

    names: of each shard the file, or that of each bin; starts: the first example of each shard and the
    number of all; corpus: all inputs as one; tokenizer: of the source. has_masks: of the source's examples.
    form: of MDS shards; None of any other.
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
    """A shard that was made or kept: an entry for each bin, or the one."""

    number: int
    entries: tuple[ShardEntry, ...]
    is_kept: bool = False

    @property
    def examples(self) -> int:
        return sum(entry.examples for entry in self.entries)

    @property
    def line(self) -> str:
        """The shard's fate, for a person."""
        bins = f" in {len(self.entries)} bins" if self.entries[1:] else ""
        made = "kept" if self.is_kept else "made"
        return f"{made} {self.entries[0].name} ({self.examples} examples{bins})"
