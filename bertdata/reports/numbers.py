"""The numbers about a dataset that a report shows, from its manifest and from a sample of examples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.dataset.chain import verify_chain
from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.findings import Report
from bertdata.dataset.lengths import read_lengths
from bertdata.dataset.manifest import ShardEntry, make_lengths_name
from bertdata.dataset.verify import verify_files
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import BertDataError, ManifestError
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.reports.sample import DatasetSample, read_sample
from bertdata.reports.shard_counts import sum_counters
from bertdata.reports.summary import Statistics


@dataclass(frozen=True, kw_only=True)
class DatasetNumbers:
    """All numbers about one dataset that the report shows.

    name: name of the dataset, which is unique on the page.
    sample: counts over some examples.
    statistics: statistics of the sample. None if no example could be read.
    lengths: number of examples, by length in tokens. They count all examples if ``lengths_are_exact``,
        otherwise the sample.
    verification: result of checking the files. None if they were not checked.
    not_verified: the reason why the files were not checked.
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
        """The training objective of the examples."""
        assert self.statistics is not None
        return find_objective(self.statistics.layout.objective)

    @property
    def has_masks(self) -> bool:
        """True if tokens of the sampled examples are masked."""
        found = self.statistics.findings.sections if self.statistics else {}
        return bool(found.get("masks", {}).get("masked_tokens"))

    @property
    def entries(self) -> Sequence[ShardEntry]:
        """The manifest entries of the shards.

        It is empty for another program's dataset, which has no manifest.
        """
        return [shard.entry for shard in self.dataset.shards if shard.entry is not None]

    @property
    def examples(self) -> int | None:
        """Number of examples in the dataset.

        It is None if this is not known without reading every shard.
        """
        if self.entries:
            return sum(entry.examples for entry in self.entries)
        return self.sample.examples if self.sample.is_all else None

    @property
    def faults(self) -> list[str]:
        """The faults that checking the files found, then the errors of the sample about other files."""
        found = () if self.verification is None else self.verification.faults
        files = tuple(f"{one.file}: " for one in found)
        return [*map(str, found), *(told for told in self.sample.faults if not told.startswith(files))]

    def describe_sample(self) -> str:
        """Return a phrase that says which examples are in the sample, such as "all 1,000 examples"."""
        sampled = self.sample.examples
        if self.sample.is_all:
            return f"all {sampled:,} examples"
        shards = len([shard for shard in self.dataset.shards if shard.bytes])
        of_all = "" if self.examples is None else f" of {self.examples:,}"
        return (
            f"a sample of {sampled:,}{of_all} examples: the first {self.sample.per_shard:,} of each of "
            f"{self.sample.shards_read} of {shards} shards"
        )

    def describe_counted_lengths(self) -> str:
        """Return a phrase for the examples whose lengths were counted, such as "all 1,000 examples"."""
        return f"all {self.lengths.total():,} examples" if self.lengths_are_exact else self.describe_sample()


def collect_numbers(
    dataset: FoundDataset, name: str, most: int, *, vocab: str | None, with_verification: bool
) -> DatasetNumbers:
    """Read about ``most`` examples of a dataset and return its numbers.

    vocab: vocabulary file for shards that contain words instead of ids. None if the user named none.
    with_verification: True also checks the files against the manifest.
    """
    verification, not_verified = None, "it was not asked for"
    if with_verification:
        verification, not_verified = _verify_dataset(dataset)
    vocabulary = load_dataset_vocabulary(vocab, dataset)
    sample = read_sample(dataset, most, vocab, vocabulary)
    statistics = None
    if sample.examples:
        statistics = Statistics(dataset, sample.counts, vocabulary.mask if vocabulary else None)
    lengths = _read_stored_lengths(dataset)
    sampled = sum_counters(shard.lengths for shard in sample.counts)
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


def _verify_dataset(dataset: FoundDataset) -> tuple[Report | None, str]:
    """Check the files of the dataset against its manifest or MD5SUMS. Return the result and an empty text.

    If the dataset has neither of them, return None and the reason.
    """
    if not storage.is_directory(dataset.path):
        return None, "it is one file of a dataset"
    if dataset.manifest is not None:
        return verify_chain(dataset.path), ""
    try:
        return verify_files(dataset.path), ""
    except ManifestError:
        return None, "it has neither manifest.json nor MD5SUMS"


def _read_stored_lengths(dataset: FoundDataset) -> Counter[int] | None:
    """Return the number of examples of each length, from the lengths files beside the shards.

    Returns None if a shard has no lengths file, or if the file does not match the manifest.
    """
    found: Counter[int] = Counter()
    for shard in dataset.shards:
        entry = shard.entry
        if entry is None or entry.lengths_md5 is None:
            return None
        try:
            path = storage.join(shard.path.removesuffix(shard.name), make_lengths_name(entry.name))
            found.update(read_lengths(path, entry.examples, entry.lengths_md5))
        except BertDataError:  # the damaged file is reported by the verification, so no error is needed here
            return None
    return found or None
