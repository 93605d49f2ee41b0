"""The two units of work of a global shuffle: a part to its sorted documents, a shard's documents to files."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bertdata import storage
from bertdata._native import Engine
from bertdata.examples import make_examples
from bertdata.jobs import Target, load_vocabulary, tokenize_part, write_shard
from bertdata.manifest import InputEntry, ShardEntry
from bertdata.shuffling import SortedDocuments, gather_documents, sort_documents


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedPart:
    """A part's documents in the order of their keys, what the manifest says of it, warnings for a person."""

    documents: SortedDocuments
    entry: InputEntry
    warnings: tuple[str, ...]


def sort_part(part: str, vocabulary: str, targets: tuple[Target, ...], engine: Engine | None) -> SortedPart:
    """Tokenise a part and sort its documents; InputError as tokenize_part has it."""
    text = storage.read_bytes(part)
    md5 = hashlib.md5(text, usedforsecurity=False).hexdigest()
    tokenized = tokenize_part(part, text, md5, vocabulary, targets[0].settings, engine)
    documents = sort_documents(tokenized.documents, tokenized.entry.name)
    return SortedPart(documents=documents, entry=tokenized.entry, warnings=tokenized.warnings)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffledJob:
    """Make shard ``number`` of ``shards`` for each target; ``corpus`` is the entry of all inputs together."""

    number: int
    shards: int
    corpus: InputEntry
    vocabulary: str
    targets: tuple[Target, ...]
    engine: Engine | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffledResult:
    """Entries of the shard by target, and how many of them were there already."""

    entries: tuple[ShardEntry, ...]
    kept: int = field(default=0)


def run_shuffled_job(job: ShuffledJob, blocks: Iterable[bytes]) -> ShuffledResult:
    """Make the job's shards of the documents in the blocks, or keep those that an earlier run finished.

    blocks: as gather_documents takes them; not looked at if there is nothing to make.
    """
    done = {
        target: entries[1]
        for target in job.targets
        if (entries := target.dataset.finished_entry(shuffled_name(job, target), job.corpus.md5)) is not None
    }
    missing = [target for target in job.targets if target not in done]
    if missing:
        vocabulary = load_vocabulary(job.vocabulary, missing[0].settings.dialect)
        documents = gather_documents(blocks, wide=vocabulary.size > 1 << 16)
        for target in missing:
            settings = target.settings
            seeded = replace(settings, random_seed=shard_seed(settings.random_seed, job.number))
            examples = make_examples(documents, vocabulary, seeded, engine=job.engine)
            entry = write_shard(target, shuffled_name(job, target), "", examples, job.engine)
            target.dataset.record(job.corpus, entry)
            done[target] = entry
    return ShuffledResult(
        entries=tuple(done[target] for target in job.targets), kept=len(job.targets) - len(missing)
    )


def shuffled_name(job: ShuffledJob, target: Target) -> str:
    """The file name of the job's shard in the target's dataset."""
    return f"shard-{job.number:05}-of-{job.shards:05}.{target.settings.format}"


def shard_seed(seed: int, number: int) -> int:
    """The seed of a shard's random stream: the first 64 bits of BLAKE2b of ``"<seed>/<number>"``."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest(), "big")
