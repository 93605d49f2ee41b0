"""The unit of work of ``create``: a task that creates one shard of each dataset from the same documents.

The documents are those of one part (input file), or those that a global shuffle assigned to the shard. The
command line, the dry run and all Beam runners use these tasks. They differ only in the processes that run the
tasks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertdata._native import Engine
from bertdata.build.binarised_part import ENDING as BINARISED
from bertdata.build.binarised_part import BinarisedPart
from bertdata.build.documents import CorpusReader, DocumentReader, LoadedDocuments, PartReader
from bertdata.build.large_document import count_largest_document
from bertdata.build.pair_label_counter import PairLabelCounter
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
from bertdata.io.worker_process import ReportAmount
from bertdata.records import MadeExamples, ShardLayout
from bertdata.shards.containers import make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import write_bins, write_examples
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import tokenizer_of, vocabulary_of

LOADING_FRACTION = 0.1
"""Rough share of a task's time that reading and tokenising take. It only serves to show progress."""
MAKING_SHARE = 0.25
"""Rough share of a shard's time that creating the examples takes. The rest is writing. It only serves to show
progress.
"""


def _ignore_progress(amount: int) -> None:
    """Do nothing. This function is the default for progress callbacks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A dataset that the run creates, with the settings of its examples.

    Each ShardTask writes one shard of every target, or one shard for each length bin (range of lengths).
    """

    dataset: Dataset
    settings: ExampleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlan:
    """The settings that all tasks of a run share. A plan is pickled and sent to worker processes.

    targets: the datasets to create. Their settings agree in the tokeniser's dialect and letter case.
    skip_bad: True leaves out parts that cannot be read. False makes the run fail.
    names: names of parts in the manifest, by path. Parts that are not listed are named by their file name.
    """

    tokenizer: TokenizerFile
    targets: tuple[Target, ...]
    engine: Engine | None = None
    skip_bad: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> None:
        """Load the tokeniser before the first task. All tasks of a process share it."""
        tokenizer_of(self.tokenizer, self.engine)

    def make_part_task(self, path: str) -> "ShardTask":
        """Return the task that creates the shards of one part (input file)."""
        reader = self.make_reader(path)
        return ShardTask(plan=self, stem=make_shard_stem(reader.name), reader=reader, inputs=(path,))

    def make_reader(self, path: str) -> DocumentReader:
        """Return the object that reads a part as tokenised documents.

        The ending of the path decides its type.
        """
        if path.endswith(BINARISED):
            return BinarisedPart(path, self.tokenizer, self.names.get(path))
        return PartReader(path, self.tokenizer, self.engine, self.names.get(path))

    def make_shuffled_task(
        self,
        number: int,
        shards: int,
        corpus: InputEntry,
        blocks: Callable[[], Iterable[bytes]] = tuple,
        inputs: Sequence[str] = (),
    ) -> "ShardTask":
        """Return the task that creates shard ``number`` of a globally shuffled dataset.

        corpus: one manifest entry that stands for all inputs together.
        blocks: function that yields the bytes of the shard's sorted documents as blocks, in any order. It is
            called only if the shard must be created.
        inputs: paths of all parts.
        """
        reader = CorpusReader(corpus, self.tokenizer, blocks)
        stem = f"shard-{number:05}-of-{shards:05}"
        return ShardTask(plan=self, stem=stem, reader=reader, inputs=tuple(inputs), number=number)

    def make_run_task(self, corpus: InputEntry, inputs: Sequence[str]) -> "ShardTask":
        """Return a task that stands for all output files of a run with ``--as-original``.

        The task is not run, since ``bertdata.build.deal`` creates these files together. It serves to find
        finished files.

        corpus: one manifest entry that stands for all inputs together.
        inputs: paths of all parts.
        """
        reader = CorpusReader(corpus, self.tokenizer, tuple)
        return ShardTask(plan=self, stem="", reader=reader, inputs=tuple(inputs), number=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardTask:
    """The task of creating one shard, or one shard for each length bin, of every dataset of the plan.

    A task that ``TaskPlan.make_run_task`` returned is not run. It only names the output files, which
    ``bertdata.build.deal`` creates.

    stem: file name of the shards without length bin and without the ending for the file format.
    inputs: paths of the parts that the task reads.
    number: number of the shard in a global shuffle, from which its random seed is derived. None for a task
        that reads a single part.
    """

    plan: TaskPlan
    stem: str
    reader: DocumentReader
    inputs: tuple[str, ...]
    number: int | None = None

    def shards(self, target: Target) -> tuple[str, ...]:
        """Return the file names of the task's shards in a dataset: one name, or one for each length bin."""
        settings = target.settings
        if settings.files_of_run:
            return settings.files_of_run
        names = format_bin_names(self.stem, settings.max_seq_length, settings.bin_size)
        return tuple(f"{name}.{settings.format}" for name in names)

    def layout(self, target: Target) -> ShardLayout:
        """Return the layout (sizes and settings) of the records in a dataset's shards, with the vocabulary's
        padding id.
        """
        return replace(target.settings.layout, padding_id=vocabulary_of(self.plan.tokenizer).padding_id)

    def settings(self, target: Target) -> ExampleSettings:
        """Return the settings of a dataset, with the random seed that this shard uses."""
        if self.number is None:
            return target.settings
        return replace(
            target.settings, random_seed=derive_shard_seed(target.settings.random_seed, self.number)
        )


TargetEntries = tuple[InputEntry, tuple[ShardEntry, ...]]
"""Manifest entries of a task in one dataset: the entry of the input, and the entries of the shards made from
it.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """Manifest entries of a finished task's input and shards, for each dataset.

    warnings: lines for the user.
    kept: number of shards that an earlier run had finished.
    ones: for each dataset, the number of sentence pairs with label 1. None if they were not counted, as for a
        kept shard.
    skipped: manifest entry of an input that was left out. There are then no other entries.
    largest_document: number of tokens in the largest document. None if the text was not read, because all
        shards were kept.
    """

    entries: tuple[TargetEntries, ...]
    warnings: tuple[str, ...] = field(default=())
    kept: int = 0
    ones: tuple[int | None, ...] = ()
    skipped: SkippedEntry | None = None
    largest_document: int | None = None

    @property
    def shards(self) -> tuple[ShardEntry, ...]:
        """Manifest entries of all shards that the task wrote or kept, in all datasets."""
        return tuple(shard for _, shards in self.entries for shard in shards)

    @property
    def line(self) -> str:
        """Line of text that reports the finished shards as progress.

        The shards of two phases have the same name, so the name is printed only once.
        """
        if self.skipped is not None:
            return f"skipped {self.skipped.name}"
        counts = [_count_examples(shards) for _, shards in self.entries]
        if len(counts) > 1:
            counts = [f"phase {number}: {count}" for number, count in enumerate(counts, 1)]
        name = self.shards[0].name
        return f"{'kept' if self.kept == len(self.shards) else 'made'} {name} ({', '.join(counts)})"


def _count_examples(shards: Sequence[ShardEntry]) -> str:
    """Return a text that says how many examples and, if there are several, how many length bins the shards
    have.
    """
    found = f"{sum(shard.examples for shard in shards)} examples"
    return found if len(shards) == 1 else f"{found} in {len(shards)} bins"


def find_finished_result(task: ShardTask) -> TaskResult | None:
    """Return the task's result if an earlier run finished all its shards.

    Returns None if a shard must be created.
    """
    targets, done = task.plan.targets, _find_finished_targets(task)
    if len(done) < len(targets):
        return None
    result = TaskResult(entries=tuple(done[target] for target in targets))
    return replace(result, kept=len(result.shards))


def _find_finished_targets(task: ShardTask) -> dict[Target, TargetEntries]:
    """Return the manifest entries of the datasets for which the task has nothing to do.

    These are the datasets in which an earlier run finished all shards of the task from the same input.
    """
    md5 = task.reader.input_md5()
    found = {}
    for target in task.plan.targets:
        names = task.shards(target)
        entries = [target.dataset.find_finished_entry(name, md5) for name in names]
        known = [one for one in entries if one is not None]
        if len(known) == len(names):
            found[target] = known[0][0], tuple(shard for _, shard in known)
    return found


def run_task(task: ShardTask, tell: ReportAmount = _ignore_progress) -> TaskResult:
    """Create the task's shards, except those that an earlier run finished from the same input.

    tell: function that is called now and then with the progress, as a number of bytes of the input.
    """
    # A crash may leave the shards of phase 1 finished and those of phase 2 not. The text is then read again,
    # but only the missing shards are created.
    targets, done = task.plan.targets, _find_finished_targets(task)
    missing = [target for target in targets if target not in done]
    warnings: tuple[str, ...] = ()
    ones: dict[Target, int | None] = {}
    largest = None
    if missing:
        try:
            loaded = task.reader.load(missing[0].settings)
        except InputError as error:
            if not task.plan.skip_bad:
                raise
            return _skip_input(task, task.reader.make_skipped_entry(error))
        warnings, largest = loaded.warnings, count_largest_document(loaded.documents)
        # With two datasets the progress goes from 0 to 0.1 while the text is loaded, from 0.1 to 0.55 while
        # the first dataset's shards are created, and from 0.55 to 1 for the second dataset.
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
        largest_document=largest,
    )


@dataclass(frozen=True, slots=True)
class _InputProgress:
    """Function object that converts the progress of one shard to a number of bytes of the task's input.

    tell: function that is called with the number of bytes.
    input_bytes: size of the input.
    begin: share of the task's work, from 0 to 1, that was done before this shard.
    fraction: share of the task's work that this shard is.
    """

    tell: ReportAmount
    input_bytes: int
    begin: float
    fraction: float

    def __call__(self, done: float) -> None:
        """Report the progress of the shard.

        done: share of the shard's work that is done, from 0 to 1.
        """
        self.tell(int(self.input_bytes * (self.begin + self.fraction * done)))


def _make_shards(
    task: ShardTask, target: Target, loaded: LoadedDocuments, progress: _InputProgress
) -> tuple[tuple[ShardEntry, ...], int | None]:
    """Create the task's shards in one dataset and record them as finished.

    Returns the manifest entries of the shards, and the number of sentence pairs with label 1. The number is
    None if the objective has no such pairs.
    """
    settings, engine = task.settings(target), task.plan.engine
    vocabulary = vocabulary_of(task.plan.tokenizer)
    progress(0)
    objective = find_objective(settings.objective)
    examples = objective.make(loaded.documents, vocabulary, settings, engine)
    watch = PairLabelCounter(examples) if objective.label_one else None
    writing = (1 - MAKING_SHARE) / max(1, len(examples))

    def report_example(example: int) -> None:
        progress(MAKING_SHARE + writing * example)

    write = _write_bins if settings.bin_size else _write_shard
    entries = add_lost_tokens(write(task, target, watch or examples, report_example), count_lost(examples))
    for entry in entries:
        target.dataset.record(loaded.entry, entry)
    return entries, watch.ones if watch else None


def _write_shard(
    task: ShardTask, target: Target, examples: MadeExamples, tell: Callable[[int], None]
) -> tuple[ShardEntry, ...]:
    """Write all examples to a single shard."""
    (name,) = task.shards(target)
    lengths = ShardLengths()
    # The shard gets its final name when the block ends. The lengths file is written after it. The note that
    # the shard is finished (Dataset.record) is written last, so that a crash before it leaves a shard without
    # a note, which the next run writes again.
    with target.dataset.open_shard(name) as file:
        sink = HashingSink(file.write)
        content_md5 = write_examples(
            examples,
            task.settings(target),
            sink,
            layout=task.layout(target),
            engine=task.plan.engine,
            name=storage.join(target.dataset.directory, name),
            on_written=tell,
            on_batch=lengths.add,
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
    """Write the examples of each length bin (range of lengths) to a shard.

    A bin without examples becomes an empty shard.
    """
    settings, engine, names = task.settings(target), task.plan.engine, task.shards(target)
    layout = task.layout(target)

    def open_writer(number: int, sink: HashingSink) -> ShardWriter:
        path = storage.join(target.dataset.directory, names[number])
        return make_writer(settings.format, sink, layout, engine, path)

    return write_shard_group(
        target.dataset,
        names,
        layout,
        open_writer,
        lambda writers: write_bins(examples, settings.bin_size, writers, tell),
        source=task.reader.name,
        engine=engine,
    )


def _skip_input(task: ShardTask, skipped: SkippedEntry) -> TaskResult:
    """Return the result for an input that is left out.

    Remove shards that an earlier run made from this input.
    """
    for target in task.plan.targets:
        for name in task.shards(target):
            target.dataset.discard(name)
    return TaskResult(entries=(), warnings=(make_skipped_warning(task.inputs[0], skipped),), skipped=skipped)


def make_skipped_warning(path: str, skipped: SkippedEntry) -> str:
    """Return the warning about an input that is left out because it cannot be read."""
    return f"{path}: {skipped.reason}; the part is left out"
