"""The two units of work of a global shuffle: a part to its sorted documents, a shard's documents to files."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bertdata.io import storage
from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.examples import make_examples
from bertdata.build.task import Job, Target, left_out, load_vocabulary, skipped_entry, tokenize_part, write_shard
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.build.shuffle import SortedDocuments, gather_documents, sort_documents


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedPart:
    """What the manifest says of a part, warnings for a person, and its documents in the order of their keys.

    A part that is left out has no documents.
    """

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...]
    documents: SortedDocuments | None = None


def sort_part(job: Job) -> SortedPart:
    """Tokenise the job's part and sort its documents."""
    text = storage.read_bytes(job.part)
    try:
        part = tokenize_part(job.part, text, job.vocabulary, job.targets[0].settings, job.engine)
    except InputError as error:
        if not job.skip_bad:
            raise
        skipped = skipped_entry(text, job.part, error)
        return SortedPart(entry=skipped, warnings=(left_out(job.part, skipped),))
    documents = sort_documents(part.documents, part.entry.name)
    return SortedPart(entry=part.entry, warnings=part.warnings, documents=documents)


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
        if (
            entries := target.dataset.finished_entry(
                shuffled_name(job.number, job.shards, target), job.corpus.md5
            )
        )
        is not None
    }
    missing = [target for target in job.targets if target not in done]
    if missing:
        vocabulary = load_vocabulary(job.vocabulary, missing[0].settings.dialect)
        documents = gather_documents(blocks, wide=vocabulary.size > 1 << 16)
        for target in missing:
            settings = target.settings
            seeded = replace(settings, random_seed=shard_seed(settings.random_seed, job.number))
            examples = make_examples(documents, vocabulary, seeded, engine=job.engine)
            entry = write_shard(
                target, shuffled_name(job.number, job.shards, target), "", examples, job.engine
            )
            target.dataset.record(job.corpus, entry)
            done[target] = entry
    return ShuffledResult(
        entries=tuple(done[target] for target in job.targets), kept=len(job.targets) - len(missing)
    )


def shuffled_name(number: int, shards: int, target: Target) -> str:
    """The file name of a shard in the target's dataset."""
    return f"shard-{number:05}-of-{shards:05}.{target.settings.format}"


def shard_seed(seed: int, number: int) -> int:
    """The seed of a shard's random stream: the first 64 bits of BLAKE2b of ``"<seed>/<number>"``."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest(), "big")
