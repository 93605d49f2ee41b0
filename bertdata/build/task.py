"""One part to its finished shards: the unit of work of the command line and of every Beam runner."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bertdata.io import storage
from bertdata._native import Engine
from bertdata.dataset.writer import Dataset
from bertdata.config.dialects import find_dialect
from bertdata.errors import InputError
from bertdata.examples import make_examples
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.config.recipes import ExampleSettings
from bertdata.records import Documents, ExampleSource, Vocabulary
from bertdata.shards.containers import make_writer
from bertdata.shards.tfrecord import encode_batch
from bertdata.tokens import parse_vocabulary
from bertdata.tokens.documents import Tokenizer
from bertdata.tokens.lines import drop_bad_utf8

BATCH = 128
"""Examples encoded at a time: enough to amortise a call, few enough for the cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A dataset that gets one shard from the part."""

    dataset: Dataset
    settings: ExampleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Make one shard of one part for each target; targets share one dialect and case.

    skip_bad: leave out a part that cannot be read, instead of failing.
    """

    part: str
    vocabulary: str
    targets: tuple[Target, ...]
    engine: Engine | None = None
    skip_bad: bool = False

    @property
    def part_name(self) -> str:
        return storage.base_name(self.part)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobResult:
    """What a job made or found: entries by target, warnings for a person, how many shards were kept.

    A part that was left out has no entries, but says why.
    """

    entries: tuple[tuple[InputEntry, ShardEntry], ...]
    warnings: tuple[str, ...] = field(default=())
    kept: int = 0
    skipped: SkippedEntry | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenizedPart:
    """A part that can be read: what the manifest says of it, its documents, warnings for a person."""

    entry: InputEntry
    documents: Documents
    warnings: tuple[str, ...]


def run_job(job: Job) -> JobResult:
    """Make the job's shards, or keep those that an earlier run finished."""
    text = storage.read_bytes(job.part)
    md5 = md5_of(text)
    done = {
        target: entries
        for target in job.targets
        if (entries := target.dataset.finished_entry(shard_name(job, target), md5)) is not None
    }
    missing = [target for target in job.targets if target not in done]
    warnings: tuple[str, ...] = ()
    if missing:
        try:
            part = tokenize_part(job.part, text, job.vocabulary, missing[0].settings, job.engine)
        except InputError as error:
            if not job.skip_bad:
                raise
            return _skip(job, skipped_entry(text, job.part, error))
        del text
        warnings = part.warnings
        for target in missing:
            vocabulary = load_vocabulary(job.vocabulary, target.settings.dialect)
            examples = make_examples(part.documents, vocabulary, target.settings, engine=job.engine)
            shard = write_shard(target, shard_name(job, target), job.part_name, examples, job.engine)
            target.dataset.record(part.entry, shard)
            done[target] = part.entry, shard
    return JobResult(
        entries=tuple(done[target] for target in job.targets),
        warnings=warnings,
        kept=len(job.targets) - len(missing),
    )


def tokenize_part(
    path: str, text: bytes, vocabulary: str, settings: ExampleSettings, engine: Engine | None
) -> TokenizedPart:
    """The part's documents and what is to be said of them; InputError for one that cannot be read."""
    tokenizer = load_tokenizer(vocabulary, settings.dialect, settings.lower_case, engine)
    documents = tokenizer.tokenize([text], [path])
    check_documents(documents, path)
    entry = InputEntry(
        name=storage.base_name(path),
        bytes=len(text),
        md5=md5_of(text),
        documents=documents.documents,
        sentences=documents.sentences,
        tokens=documents.tokens,
    )
    warnings = (*text_warnings(text, path, settings.dialect), *document_warnings(documents, path))
    return TokenizedPart(entry=entry, documents=documents, warnings=warnings)


def skipped_entry(text: bytes, path: str, error: InputError) -> SkippedEntry:
    """What the manifest says of a part that is left out for that error of tokenize_part."""
    reason = str(error).removeprefix(f"{path}: ").partition("; ")[0]  # a path would differ between machines
    return SkippedEntry(name=storage.base_name(path), bytes=len(text), md5=md5_of(text), reason=reason)


def left_out(path: str, skipped: SkippedEntry) -> str:
    """The warning for a part that is left out."""
    return f"{path}: {skipped.reason}; the part is left out"


def _skip(job: Job, skipped: SkippedEntry) -> JobResult:
    for target in job.targets:
        target.dataset.discard(shard_name(job, target))
    return JobResult(entries=(), warnings=(left_out(job.part, skipped),), skipped=skipped)


def md5_of(text: bytes) -> str:
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def shard_name(job: Job, target: Target) -> str:
    """The file name of the job's shard in the target's dataset."""
    return f"{job.part_name}.{target.settings.format}"


@lru_cache(maxsize=4)
def load_vocabulary(path: str, dialect: str) -> Vocabulary:
    """The vocabulary file as the dialect reads it; kept between a worker's jobs."""
    return parse_vocabulary(storage.read_bytes(path), path, find_dialect(dialect))


@lru_cache(maxsize=4)
def load_tokenizer(path: str, dialect: str, lower_case: bool, engine: Engine | None) -> Tokenizer:
    """A tokeniser with its cache of words; kept between a worker's jobs."""
    return Tokenizer(
        load_vocabulary(path, dialect), find_dialect(dialect), lower_case=lower_case, engine=engine
    )


def check_documents(documents: Documents, name: str) -> None:
    """InputError for an input without any sentence."""
    if not documents.sentences:
        raise InputError(
            f"{name}: holds no sentences, expected one sentence a line, a blank line between documents"
        )


def text_warnings(text: bytes, name: str, dialect: str) -> list[str]:
    """What a person should know of the bytes of a text that is read without error."""
    found = []
    if nuls := text.count(0):
        line = text.count(b"\n", 0, text.index(0)) + 1
        found.append(
            f"{name}: line {line}: the first of {nuls} NUL bytes, all dropped; is this file UTF-8 text?"
        )
    if find_dialect(dialect).drops_bad_utf8:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            dropped, line = len(text) - len(drop_bad_utf8(text)), text.count(b"\n", 0, error.start) + 1
            found.append(f"{name}: line {line}: the first of {dropped} bytes that are not UTF-8, all dropped")
    return found


def document_warnings(documents: Documents, name: str) -> list[str]:
    """What a person should know of documents that give odd next-sentence labels."""
    if documents.documents == 1 and documents.sentences > 1:
        return [
            f"{name}: no blank line, so the text is one document: every random next sentence comes from that "
            "same document, and next-sentence labels say little; put a blank line between documents"
        ]
    if documents.documents == documents.sentences:
        return [
            f"{name}: every document is a single sentence, so every next sentence will be random; "
            "put blank lines between documents only"
        ]
    return []


class HashingSink:
    """Passes bytes on to a file, counting and hashing them."""

    def __init__(self, write: Callable[[bytes | memoryview], Any]) -> None:
        self._write = write
        self._digest = hashlib.md5(usedforsecurity=False)
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        self._write(data)
        self._digest.update(data)
        self.bytes += len(data)

    @property
    def md5(self) -> str:
        return self._digest.hexdigest()


def write_shard(
    target: Target, name: str, input_name: str, examples: ExampleSource, engine: Engine | None
) -> ShardEntry:
    """Write a shard of the target's dataset, made from the input of that name; its entry for the manifest."""
    path = storage.join(target.dataset.directory, name)
    with storage.open_output(path, temporary=target.dataset.unfinished) as file:
        sink = HashingSink(file.write)
        content_md5 = write_examples(examples, target.settings, sink, engine=engine)
    return ShardEntry(
        name=name,
        input=input_name,
        bytes=sink.bytes,
        md5=sink.md5,
        content_md5=content_md5 or sink.md5,
        examples=len(examples),
        tokens=examples.tokens,
        masked_tokens=examples.masked,
    )


def write_examples(
    examples: ExampleSource,
    settings: ExampleSettings,
    sink: HashingSink,
    *,
    engine: Engine | None,
    start: int = 0,
    step: int = 1,
) -> str | None:
    """Write examples start, start + step, ... as one container; their content md5 unless it is the sink's."""
    writer = make_writer(settings.format, sink, settings.layout, engine)
    content = None if settings.format == "tfrecord" else hashlib.md5(usedforsecurity=False)
    for first in range(start, len(examples), BATCH * step):
        batch = examples.batch(first, min(first + BATCH * step, len(examples)), step)
        writer.write(batch)
        if content is not None:
            content.update(encode_batch(batch, settings.layout, engine))
    writer.close()
    return None if content is None else content.hexdigest()
