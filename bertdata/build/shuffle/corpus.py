"""The plan of a global shuffle after all parts are sorted: which pieces of which files make up each shard."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.shuffle.document_cuts import count_tokens, deal_to_shards, find_shard_cuts
from bertdata.build.shuffle.sorted_files import Pieces, SortedFile, SortResult
from bertdata.dataset.manifest import InputEntry, SkippedEntry, make_corpus_entry
from bertdata.dataset.writer import refuse_only_skipped


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """All inputs of a globally shuffled run: the parts that were read, and the parts that were left out."""

    inputs: tuple[InputEntry, ...]
    skipped: tuple[SkippedEntry, ...] = ()

    @property
    def entry(self) -> InputEntry:
        """Manifest entry for all parts as a whole, with their total size and a common md5."""
        return make_corpus_entry(self.inputs, self.skipped)

    @property
    def md5s(self) -> dict[str, str]:
        """Md5 of each input, by name."""
        read = {entry.name: entry.md5 for entry in self.inputs}
        return read | {entry.name: entry.md5 for entry in self.skipped}


def make_corpus(results: Sequence[SortResult]) -> Corpus:
    """Combine the results of sorting all parts. Raises InputError if every part was left out."""
    entries = [result.entry for result in results]
    read = tuple(entry for entry in entries if isinstance(entry, InputEntry))
    skipped = tuple(entry for entry in entries if isinstance(entry, SkippedEntry))
    if not read:
        refuse_only_skipped(skipped)
    return Corpus(inputs=read, skipped=skipped)


def deal_pieces(files: Sequence[SortedFile], shards: int) -> list[Pieces]:
    """Return, for each shard, the pieces (ranges of sorted files) that hold its documents.

    Raises SettingsError if there are fewer documents than shards.
    """
    # First pass over the indexes: tokens per key prefix in the whole corpus, which gives the cuts. Second
    # pass: where the cuts fall in each file. Indexes are read twice, so that only one is in memory.
    histogram: dict[int, int] = {}
    for file in files:
        prefixes, _, tokens = file.index()
        for prefix, number in count_tokens(prefixes, tokens, shards).items():
            histogram[prefix] = histogram.get(prefix, 0) + number
    cuts = find_shard_cuts(histogram, shards)
    places = [array("Q") for _ in range(shards)]
    for number, file in enumerate(files):
        prefixes, starts, _ = file.index()
        for shard, start, stop in deal_to_shards(prefixes, starts, file.record_bytes, cuts, shards):
            places[shard].extend((number, start, stop))
    paths = tuple(file.path for file in files)
    return [Pieces(paths, found) for found in places]
