"""The unit of work of ``create``: making one shard of each target dataset from the same documents.

These are the documents of one part, or of one shard of a global shuffle. The command line, the dry run and
all Beam runners use these tasks. They only run the tasks in different processes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertdata._native import Engine
from bertdata.build.binarised_part import ENDING as BINARISED
from bertdata.build.binarised_part import BinarisedPart
from bertdata.build.documents import CorpusReader, DocumentReader, LoadedDocuments, PartReader
from bertdata.build.pair_watch import PairWatch
from bertdata.build.part_names import make_shard_stem
from bertdata.build.shuffle.keys import derive_shard_seed
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.lengths import ShardLengths
from bertdata.dataset.lost_text import add_lost_tokens, count_lost
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import Dataset
from bertdata.errors import InputError
from bertdata.examples.bins import format_bin_names
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import HashingSink
from bertdata.io.worker_process import Tell
from bertdata.records import MadeExamples, ShardLayout
from bertdata.shards.containers import make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import write_bins, write_examples
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of

LOADING_FRACTION = 0.1
"""Rough share of a task's time that reading and tokenising take. Only used for progress."""
MAKING_SHARE = 0.25
"""Share of a shard's time that creating the examples takes. The rest is writing."""


def _ignore_progress(amount: int) -> None:
    """Do nothing. This is the default of progress callbacks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A dataset to create, with the settings of its examples.

    Each ShardTask writes a shard (or one per length bin) of every target.
    """

    dataset: Dataset
    settings: ExampleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlan:
    """The settings that all tasks of a run share. Instances are pickled and sent to workers.

    targets: datasets, which share the tokenizer's dialect and casing.
    skip_bad: leave out parts that cannot be read instead of failing.
    names: names of parts in the manifest, by path, where they differ from the file names.
    """

    tokenizer: TokenizerFile
    targets: tuple[Target, ...]
    engine: Engine | None = None
    skip_bad: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> None:
        """Load the tokeniser before the first task. All tasks of a process share it."""
        tokenizer_of(self.tokenizer, self.engine)

    def part(self, path: str) -> "ShardTask":
        """Return the task that creates the shards of one text part."""
        reader = self.reader(path)
        return ShardTask(plan=self, stem=make_shard_stem(reader.name), reader=reader, inputs=(path,))

    def reader(self, path: str) -> DocumentReader:
        """Return the object that reads and tokenises a text part, depending on the type of the file."""
        if path.endswith(BINARISED):
            return BinarisedPart(path, self.tokenizer, self.names.get(path))
        return PartReader(path, self.tokenizer, self.engine, self.names.get(path))

    def shuffled(
        self,
        number: int,
        shards: int,
        corpus: InputEntry,
        blocks: Callable[[], Iterable[bytes]] = tuple,
        inputs: Sequence[str] = (),
    ) -> "ShardTask":
        """Return the task that creates shard ``number`` of a globally shuffled dataset.

        corpus: one manifest entry for all inputs together.
        blocks: function that yields the bytes of the shard's sorted documents, block by block in any order.
            It is only called if the shard must be created.
        """
        reader = CorpusReader(corpus, self.tokenizer, blocks)
        stem = f"shard-{number:05}-of-{shards:05}"
        return ShardTask(plan=self, stem=stem, reader=reader, inputs=tuple(inputs), number=number)

    def of_run(self, corpus: InputEntry, inputs: Sequence[str]) -> "ShardTask":
        """Return a task that stands for all files of a run with ``files_of_run``, which one process creates.

        corpus: one manifest entry for all inputs together.
        """
        reader = CorpusReader(corpus, self.tokenizer, tuple)
        return ShardTask(plan=self, stem="", reader=reader, inputs=tuple(inputs), number=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTask:
    """The task of creating one shard, or one per length bin, for each target of the plan.

    A task of ``TaskPlan.of_run`` only names the files of the run. ``bertdata.build.deal`` creates them.

    stem: the shards' file name without bin and container ending.
    inputs: paths of the parts that the task reads.
    number: number of a global shuffle's shard, from which its random seed is derived. None means a task of
        one part.
    """

    plan: TaskPlan
    stem: str
    reader: DocumentReader
    inputs: tuple[str, ...]
    number: int | None = None

    def shards(self, target: Target) -> tuple[str, ...]:
        """Return the shards' file names in the target's dataset: one, or one per length bin."""
        settings = target.settings
        if settings.files_of_run:
            return settings.files_of_run
        names = format_bin_names(self.stem, settings.max_seq_length, settings.bin_size)
        return tuple(f"{name}.{settings.format}" for name in names)

    def layout(self, target: Target) -> ShardLayout:
        """Return the shape of the records in the target's shards, with the vocabulary's padding id."""
        return replace(target.settings.layout, padding_id=vocabulary_of(self.plan.tokenizer).padding_id)

    def settings(self, target: Target) -> ExampleSettings:
        """Return the target's settings, with the seed of this shard."""
        if self.number is None:
            return target.settings
        return replace(
            target.settings, random_seed=derive_shard_seed(target.settings.random_seed, self.number)
        )


TargetEntries = tuple[InputEntry, tuple[ShardEntry, ...]]
"""Manifest entries of the input and of the shards made from it, for one target."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """Manifest entries of a finished task's input and shards, for each target dataset.

    warnings: lines for the user.
    kept: number of shards that an earlier run finished.
    ones: by target, the number of sentence pairs with label 1. None if they were not counted, as in a kept
        shard.
    skipped: set if the input was left out. Then there are no entries.
    """

    entries: tuple[TargetEntries, ...]
    warnings: tuple[str, ...] = field(default=())
    kept: int = 0
    ones: tuple[int | None, ...] = ()
    skipped: SkippedEntry | None = None

    @property
    def shards(self) -> tuple[ShardEntry, ...]:
        """The manifest entries of the shards that the task wrote or kept, over all targets."""
        return tuple(shard for _, shards in self.entries for shard in shards)

    @property
    def line(self) -> str:
        """Progress line about the shards. Both phases' shards have the same name, so it is printed once."""
        if self.skipped is not None:
            return f"skipped {self.skipped.name}"
        counts = [_count_examples(shards) for _, shards in self.entries]
        if len(counts) > 1:
            counts = [f"phase {number}: {count}" for number, count in enumerate(counts, 1)]
        name = self.shards[0].name
        return f"{'kept' if self.kept == len(self.shards) else 'made'} {name} ({', '.join(counts)})"


def _count_examples(shards: Sequence[ShardEntry]) -> str:
    """Say in words how many examples, and how many length bins if there are several, the shards have."""
    found = f"{sum(shard.examples for shard in shards)} examples"
    return found if len(shards) == 1 else f"{found} in {len(shards)} bins"


def keep_task(task: ShardTask) -> TaskResult | None:
    """Return the task's result if an earlier run finished all its shards.

    Returns None if a shard must be created.
    """
    targets, done = task.plan.targets, _find_finished(task)
    if len(done) < len(targets):
        return None
    result = TaskResult(entries=tuple(done[target] for target in targets))
    return replace(result, kept=len(result.shards))


def _find_finished(task: ShardTask) -> dict[Target, TargetEntries]:
    """Return the entries of the targets whose shards an earlier run has all finished from the same input."""
    md5 = task.reader.input_md5()
    found = {}
    for target in task.plan.targets:
        names = task.shards(target)
        entries = [target.dataset.find_finished_entry(name, md5) for name in names]
        known = [one for one in entries if one is not None]
        if len(known) == len(names):
            found[target] = known[0][0], tuple(shard for _, shard in known)
    return found


def run_task(task: ShardTask, tell: Tell = _ignore_progress) -> TaskResult:
    """Create the task's shards, or keep those that an earlier run finished from the same input.

    tell: called now and then with the progress, as a number of bytes of the input.
    """
    # A crash between two phases leaves one target finished and the other not. The text is then read again,
    # but only the missing target's shards are created.
    targets, done = task.plan.targets, _find_finished(task)
    missing = [target for target in targets if target not in done]
    warnings: tuple[str, ...] = ()
    ones: dict[Target, int | None] = {}
    if missing:
        try:
            loaded = task.reader.load(missing[0].settings)
        except InputError as error:
            if not task.plan.skip_bad:
                raise
            return _skip_input(task, task.reader.skipped(error))
        warnings = loaded.warnings
        # Progress of two targets: loading 0 to 0.1, first target 0.1 to 0.55, second target 0.55 to 1.
        fraction = (1 - LOADING_FRACTION) / len(missing)
        for number, target in enumerate(missing):
            progress = _InputProgress(
                tell, loaded.entry.bytes, LOADING_FRACTION + number * fraction, fraction
            )
            entries, ones[target] = _make_shards(task, target, loaded, progress)
            done[target] = loaded.entry, entries
    return TaskResult(
        entries=tuple(done[target] for target in targets),
        warnings=warnings,
        kept=sum(len(done[target][1]) for target in targets if target not in missing),
        ones=tuple(ones.get(target) for target in targets),
    )


@dataclass(frozen=True, slots=True)
class _InputProgress:
    """Converts the progress of one shard to bytes of the task's input.

    begin, fraction: the shard is the share of the task's work from ``begin`` to ``begin + fraction`` (0 to
        1).
    """

    tell: Tell
    input_bytes: int
    begin: float
    fraction: float

    def __call__(self, done: float) -> None:
        """Report that a share of the shard's work is done, from 0 to 1."""
        self.tell(int(self.input_bytes * (self.begin + self.fraction * done)))


def _make_shards(
    task: ShardTask, target: Target, loaded: LoadedDocuments, progress: _InputProgress
) -> tuple[tuple[ShardEntry, ...], int | None]:
    """Write the task's shards for a target and note them as finished.

    Returns their entries, and the number of pairs with label 1 or None.
    """
    settings, engine = task.settings(target), task.plan.engine
    vocabulary = vocabulary_of(task.plan.tokenizer)
    progress(0)
    objective = find_objective(settings.objective)
    examples = objective.make(loaded.documents, vocabulary, settings, engine)
    watch = PairWatch(examples) if objective.label_one else None
    writing = (1 - MAKING_SHARE) / max(1, len(examples))

    def tell(example: int) -> None:
        progress(MAKING_SHARE + writing * example)

    write = _write_bins if settings.bin_size else _write_shard
    entries = add_lost_tokens(write(task, target, watch or examples, tell), count_lost(examples))
    for entry in entries:
        target.dataset.record(loaded.entry, entry)
    return entries, watch.ones if watch else None


def _write_shard(
    task: ShardTask, target: Target, examples: MadeExamples, tell: Callable[[int], None]
) -> tuple[ShardEntry, ...]:
    """Write all examples as one shard."""
    (name,) = task.shards(target)
    lengths = ShardLengths()
    # The shard appears under its name at the end of the block. The lengths file comes after it, and the note
    # (Dataset.record) last. A crash in between leaves a shard without a note, which is written again.
    with target.dataset.open_shard(name) as file:
        sink = HashingSink(file.write)
        content_md5 = write_examples(
            examples,
            task.settings(target),
            sink,
            layout=task.layout(target),
            engine=task.plan.engine,
            name=storage.join(target.dataset.directory, name),
            tell=tell,
            also=lengths.add,
        )
    entry = ShardEntry(
        name=name,
        input=task.reader.name,
        bytes=sink.bytes,
        md5=sink.md5,
        content_md5=content_md5,
        examples=len(examples),
        tokens=examples.tokens,
        masked_tokens=examples.masked,
        lengths_md5=target.dataset.write_lengths(name, lengths),
    )
    return (entry,)


def _write_bins(
    task: ShardTask, target: Target, examples: MadeExamples, tell: Callable[[int], None]
) -> tuple[ShardEntry, ...]:
    """Write the examples of each length bin as a shard. A bin without examples becomes an empty shard."""
    settings, engine, names = task.settings(target), task.plan.engine, task.shards(target)
    layout = task.layout(target)

    def writer(number: int, sink: HashingSink) -> ShardWriter:
        path = storage.join(target.dataset.directory, names[number])
        return make_writer(settings.format, sink, layout, engine, path)

    return write_shard_group(
        target.dataset,
        names,
        layout,
        writer,
        lambda writers: write_bins(examples, settings.bin_size, writers, tell),
        source=task.reader.name,
        engine=engine,
    )


def _skip_input(task: ShardTask, skipped: SkippedEntry) -> TaskResult:
    """Leave out the task's input, and remove shards that an earlier run made from it."""
    for target in task.plan.targets:
        for name in task.shards(target):
            target.dataset.discard(name)
    return TaskResult(entries=(), warnings=(warn_of_left_out(task.inputs[0], skipped),), skipped=skipped)


def warn_of_left_out(path: str, skipped: SkippedEntry) -> str:
    """Return the warning for an input that is left out."""
    return f"{path}: {skipped.reason}; the part is left out"
