"""The one unit of work: the shards that are made of one lot of documents, one for each dataset.

Command line, dry run and every Beam runner go through tasks, plain and shuffled; all that differs is
who runs them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertdata._native import Engine
from bertdata.build.binarised_part import ENDING as BINARISED
from bertdata.build.binarised_part import BinarisedPart
from bertdata.build.documents import CorpusReader, DocumentReader, LoadedDocuments, PartReader
from bertdata.build.pair_watch import PairWatch
from bertdata.build.part_names import shard_stem
from bertdata.build.shuffle.keys import shard_seed
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.lengths import ShardLengths
from bertdata.dataset.lost_text import count_lost, with_lost
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import Dataset
from bertdata.errors import InputError
from bertdata.examples.bins import bin_names
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
"""Share of a task's time, for progress only, in which documents are read and tokenised; roughly."""
MAKING_SHARE = 0.25
"""Share of a shard's time in which examples are made; in the rest they are written."""


def _tell_nobody(amount: int) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A dataset that gets one shard of each task."""

    dataset: Dataset
    settings: ExampleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlan:
    """Settings that all tasks of a run share. Picklable, travels to workers.

    targets share one dialect and case. skip_bad: leave out a part that cannot be read, instead of failing.
    names: of parts in the manifest, by path, where they are not the files' names.
    """

    tokenizer: TokenizerFile
    targets: tuple[Target, ...]
    engine: Engine | None = None
    skip_bad: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> None:
        """Load what every task of this process needs."""
        tokenizer_of(self.tokenizer, self.engine)

    def part(self, path: str) -> "ShardTask":
        """The task of one part."""
        reader = self.reader(path)
        return ShardTask(plan=self, stem=shard_stem(reader.name), reader=reader, inputs=(path,))

    def reader(self, path: str) -> DocumentReader:
        """Return the reader of a part."""
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
        """The task of shard ``number`` of a global shuffle. Corpus and blocks as CorpusReader takes them."""
        reader = CorpusReader(corpus, self.tokenizer, blocks)
        stem = f"shard-{number:05}-of-{shards:05}"
        return ShardTask(plan=self, stem=stem, reader=reader, inputs=tuple(inputs), number=number)

    def of_run(self, corpus: InputEntry, inputs: Sequence[str]) -> "ShardTask":
        """The files of a whole run, which one process makes. corpus: the entry of all inputs together."""
        reader = CorpusReader(corpus, self.tokenizer, tuple)
        return ShardTask(plan=self, stem="", reader=reader, inputs=tuple(inputs), number=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTask:
    """Make one shard of the documents for each target of the plan, or one for each bin of lengths.

    Of a whole run whose settings name its files it tells these, and ``bertdata.build.deal`` makes them.

    stem: the shards' name without bin and container's ending; inputs: paths of the parts that it reads;
    number: of a global shuffle's shard, whose random stream has a seed of its own.
    """

    plan: TaskPlan
    stem: str
    reader: DocumentReader
    inputs: tuple[str, ...]
    number: int | None = None

    def shards(self, target: Target) -> tuple[str, ...]:
        """The file names in the target's dataset: of the one shard, or of each bin's."""
        settings = target.settings
        if settings.files_of_run:
            return settings.files_of_run
        names = bin_names(self.stem, settings.max_seq_length, settings.bin_size)
        return tuple(f"{name}.{settings.format}" for name in names)

    def layout(self, target: Target) -> ShardLayout:
        """The layout of the target's shards."""
        return replace(target.settings.layout, padding_id=vocabulary_of(self.plan.tokenizer).padding_id)

    def settings(self, target: Target) -> ExampleSettings:
        """The target's settings, with this shard's seed."""
        if self.number is None:
            return target.settings
        return replace(target.settings, random_seed=shard_seed(target.settings.random_seed, self.number))


TargetEntries = tuple[InputEntry, tuple[ShardEntry, ...]]
"""The entries of the input and of the shards that a target has of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """Entries made or found, by target. Warnings for a person. Returns how many shards were kept.

    ones: by target, examples with the pair label 1; None where nobody counted them, as in a shard that was
    kept. An input that was left out has no entries, but says why.
    """

    entries: tuple[TargetEntries, ...]
    warnings: tuple[str, ...] = field(default=())
    kept: int = 0
    ones: tuple[int | None, ...] = ()
    skipped: SkippedEntry | None = None

    @property
    def shards(self) -> tuple[ShardEntry, ...]:
        """The shards of all targets."""
        return tuple(shard for _, shards in self.entries for shard in shards)

    @property
    def line(self) -> str:
        """The shards that were made or kept, for a person. Those of two phases have one name."""
        if self.skipped is not None:
            return f"skipped {self.skipped.name}"
        counts = [_examples(shards) for _, shards in self.entries]
        if len(counts) > 1:
            counts = [f"phase {number}: {count}" for number, count in enumerate(counts, 1)]
        name = self.shards[0].name
        return f"{'kept' if self.kept == len(self.shards) else 'made'} {name} ({', '.join(counts)})"


def _examples(shards: Sequence[ShardEntry]) -> str:
    """The number of examples, and of bins where there are some."""
    found = f"{sum(shard.examples for shard in shards)} examples"
    return found if len(shards) == 1 else f"{found} in {len(shards)} bins"


def keep_task(task: ShardTask) -> TaskResult | None:
    """The result of a task all of whose shards an earlier run finished. None where one has to be made."""
    targets, done = task.plan.targets, _finished(task)
    if len(done) < len(targets):
        return None
    result = TaskResult(entries=tuple(done[target] for target in targets))
    return replace(result, kept=len(result.shards))


def _finished(task: ShardTask) -> dict[Target, TargetEntries]:
    """The entries of the targets all of whose shards an earlier run finished of the same input."""
    md5 = task.reader.input_md5()
    found = {}
    for target in task.plan.targets:
        names = task.shards(target)
        entries = [target.dataset.finished_entry(name, md5) for name in names]
        known = [one for one in entries if one is not None]
        if len(known) == len(names):
            found[target] = known[0][0], tuple(shard for _, shard in known)
    return found


def run_task(task: ShardTask, tell: Tell = _tell_nobody) -> TaskResult:
    """Make the task's shards, or keep those that an earlier run finished of the same input.

    tell: called now and then with how many bytes of the input the work done so far amounts to.
    """
    targets, done = task.plan.targets, _finished(task)
    missing = [target for target in targets if target not in done]
    warnings: tuple[str, ...] = ()
    ones: dict[Target, int | None] = {}
    if missing:
        try:
            loaded = task.reader.load(missing[0].settings)
        except InputError as error:
            if not task.plan.skip_bad:
                raise
            return _skip(task, task.reader.skipped(error))
        warnings = loaded.warnings
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
    """Progress of one shard, told as bytes of the input: a share of the work, from begin on."""

    tell: Tell
    input_bytes: int
    begin: float
    fraction: float

    def __call__(self, done: float) -> None:
        """A part of the shard's work is done, from 0 to 1."""
        self.tell(int(self.input_bytes * (self.begin + self.fraction * done)))


def _make_shards(
    task: ShardTask, target: Target, loaded: LoadedDocuments, progress: _InputProgress
) -> tuple[tuple[ShardEntry, ...], int | None]:
    """Write the task's shards of a target and note them as finished. Their entries, and pairs of label 1."""
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
    entries = with_lost(write(task, target, watch or examples, tell), count_lost(examples))
    for entry in entries:
        target.dataset.record(loaded.entry, entry)
    return entries, watch.ones if watch else None


def _write_shard(
    task: ShardTask, target: Target, examples: MadeExamples, tell: Callable[[int], None]
) -> tuple[ShardEntry, ...]:
    """Write all examples as one shard."""
    (name,) = task.shards(target)
    lengths = ShardLengths()
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
    """Write the examples of each bin as a shard. One without examples is written too."""
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


def _skip(task: ShardTask, skipped: SkippedEntry) -> TaskResult:
    """Leave out the task's input. A shard that an earlier run made of it is removed."""
    for target in task.plan.targets:
        for name in task.shards(target):
            target.dataset.discard(name)
    return TaskResult(entries=(), warnings=(left_out(task.inputs[0], skipped),), skipped=skipped)


def left_out(path: str, skipped: SkippedEntry) -> str:
    """The warning for an input that is left out."""
    return f"{path}: {skipped.reason}; the part is left out"
