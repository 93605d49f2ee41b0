"""A dataset's numbers for a page: what is exact by its manifest and lengths, and a sample of its examples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.dataset.chain import verify_chain
from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.findings import Report
from bertdata.dataset.lengths import read_lengths
from bertdata.dataset.manifest import ShardEntry, lengths_name
from bertdata.dataset.verify import verify_files
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import BertDataError, ManifestError
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.report.count import merged
from bertdata.report.sample import DatasetSample, read_sample
from bertdata.report.summary import Statistics


@dataclass(frozen=True, kw_only=True)
class DatasetNumbers:
    """A dataset under a name that no other of the page has.

    verification: None where the files were not checked, for the reason in not_verified. statistics: of the
    sample; None where no example could be read. lengths: examples by their tokens, of all examples where
    lengths_are_exact, else of the sample.
    """

    name: str
    dataset: FoundDataset
    vocabulary: Vocabulary | None
    sample: DatasetSample
    statistics: Statistics | None
    lengths: Counter[int]
    lengths_are_exact: bool
    verification: Report | None
    not_verified: str = ""

    @property
    def objective(self) -> Objective:
        assert self.statistics is not None
        return find_objective(self.statistics.layout.objective)

    @property
    def entries(self) -> Sequence[ShardEntry]:
        """The shards as the manifest lists them. Another tool's have none."""
        return [shard.entry for shard in self.dataset.shards if shard.entry is not None]

    @property
    def examples(self) -> int | None:
        """All examples. None where nobody counted them."""
        if self.entries:
            return sum(entry.examples for entry in self.entries)
        return self.sample.examples if self.sample.is_all else None

    @property
    def faults(self) -> list[str]:
        """The faults that verification found, then those of shards that the sample alone found."""
        found = () if self.verification is None else self.verification.faults
        files = tuple(f"{one.file}: " for one in found)
        return [*map(str, found), *(told for told in self.sample.faults if not told.startswith(files))]

    def scope(self) -> str:
        """The examples that the sample's numbers are of, in words."""
        sampled = self.sample.examples
        if self.sample.is_all:
            return f"all {sampled:,} examples"
        shards = len([shard for shard in self.dataset.shards if shard.bytes])
        of_all = "" if self.examples is None else f" of {self.examples:,}"
        return (
            f"a sample of {sampled:,}{of_all} examples: the first {self.sample.per_shard:,} of each of "
            f"{self.sample.shards_read} of {shards} shards"
        )

    def scope_of_lengths(self) -> str:
        """The examples that the lengths are of, in words."""
        return f"all {self.lengths.total():,} examples" if self.lengths_are_exact else self.scope()


def collect_numbers(
    dataset: FoundDataset, name: str, most: int, *, vocab: str | None, with_verification: bool
) -> DatasetNumbers:
    """The dataset's numbers, of about ``most`` examples where they have to be read."""
    verification, not_verified = None, "it was not asked for"
    if with_verification:
        verification, not_verified = _verified(dataset)
    vocabulary = known_vocabulary(vocab, dataset)
    sample = read_sample(dataset, most, vocab, vocabulary)
    statistics = None
    if sample.examples:
        statistics = Statistics(dataset, sample.counts, vocabulary.mask if vocabulary else None)
    lengths = _stored_lengths(dataset)
    sampled = merged(shard.lengths for shard in sample.counts)
    return DatasetNumbers(
        name=name,
        dataset=dataset,
        vocabulary=vocabulary,
        sample=sample,
        statistics=statistics,
        lengths=sampled if lengths is None else lengths,
        lengths_are_exact=lengths is not None or sample.is_all,
        verification=verification,
        not_verified=not_verified,
    )


def _verified(dataset: FoundDataset) -> tuple[Report | None, str]:
    if not storage.is_directory(dataset.path):
        return None, "it is one file of a dataset"
    if dataset.manifest is not None:
        return verify_chain(dataset.path), ""
    try:
        return verify_files(dataset.path), ""
    except ManifestError:
        return None, "it has neither manifest.json nor MD5SUMS"


def _stored_lengths(dataset: FoundDataset) -> Counter[int] | None:
    """The lengths of all examples. None where a shard has none, or they are not those that are listed."""
    found: Counter[int] = Counter()
    for shard in dataset.shards:
        entry = shard.entry
        if entry is None or entry.lengths_md5 is None:
            return None
        try:
            path = storage.join(shard.path.removesuffix(shard.name), lengths_name(entry.name))
            found.update(read_lengths(path, entry.examples, entry.lengths_md5))
        except BertDataError:  # verification tells of it
            return None
    return found or None
