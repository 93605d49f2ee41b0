"""The inputs of a global shuffle, and which documents of each sorted input belong to which shard."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.shuffle.document_cuts import count_tokens, divide_part_into_shards, find_shard_cuts
from bertdata.build.shuffle.sorted_files import Pieces, SortedFile, SortResult
from bertdata.dataset.manifest import InputEntry, SkippedEntry, make_corpus_entry
from bertdata.dataset.writer import raise_if_inputs_skipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """All inputs of a globally shuffled run.

    inputs: manifest entries of the parts (input files) that were read.
    skipped: manifest entries of the parts that were left out.
    """

    inputs: tuple[InputEntry, ...]
    skipped: tuple[SkippedEntry, ...] = ()

    @property
    def entry(self) -> InputEntry:
        """A single manifest entry that stands for all parts, with their total size and a common md5."""
        return make_corpus_entry(self.inputs, self.skipped)

    @property
    def md5s(self) -> dict[str, str]:
        """The md5 of each input, by name."""
        read = {entry.name: entry.md5 for entry in self.inputs}
        return read | {entry.name: entry.md5 for entry in self.skipped}


def make_corpus(results: Sequence[SortResult]) -> Corpus:
    """Combine the results of sorting all parts. Raises InputError if all parts were left out."""
    entries = [result.entry for result in results]
    read = tuple(entry for entry in entries if isinstance(entry, InputEntry))
    skipped = tuple(entry for entry in entries if isinstance(entry, SkippedEntry))
    if not read:
        raise_if_inputs_skipped(skipped)
    return Corpus(inputs=read, skipped=skipped)


def divide_into_shards(files: Sequence[SortedFile], shards: int) -> list[Pieces]:
    """Return, for each shard, the ranges of the sorted files that hold the shard's documents.

    Raises SettingsError if there are fewer documents than shards.
    """
    # First read all indexes to count the tokens for each key prefix, from which the cuts follow. Then read
    # them again to find where the cuts lie in each file. Reading each index twice means that only one is in
    # memory at a time.
    histogram: dict[int, int] = {}
    for file in files:
        prefixes, _, tokens = file.index()
        for prefix, number in count_tokens(prefixes, tokens, shards).items():
            histogram[prefix] = histogram.get(prefix, 0) + number
    cuts = find_shard_cuts(histogram, shards)
    places = [array("Q") for _ in range(shards)]
    for number, file in enumerate(files):
        prefixes, starts, _ = file.index()
        for shard, start, stop in divide_part_into_shards(prefixes, starts, file.record_bytes, cuts, shards):
            places[shard].extend((number, start, stop))
    paths = tuple(file.path for file in files)
    return [Pieces(paths, found) for found in places]
