"""Creation of a whole dataset in one random stream, as the original programs do (``--as-original``).

The documents of all parts pass through a single random generator, and the examples go to the output files in
turn: example 0 to file 0, example 1 to file 1, and so on. Several processes read and tokenise the parts. A
single process creates and writes the examples, because each example continues the random numbers of the
example before.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bertdata.build.documents import LoadedDocuments
from bertdata.build.shard_task import Target, TaskPlan, warn_of_left_out
from bertdata.build.shuffle.corpus import Corpus
from bertdata.dataset.lost_text import add_lost_tokens, count_lost
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import refuse_only_skipped
from bertdata.errors import InputError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import HashingSink
from bertdata.io.open_files import allow_open_files
from bertdata.records import Buffer, Documents, MadeExamples
from bertdata.shards.containers import make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import CountingWriter
from bertdata.tokens.load import vocabulary_of


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadTask:
    """A task for a worker process: read and tokenise one text part."""

    plan: TaskPlan
    part: str


def load_input(task: LoadTask) -> LoadedDocuments | SkippedEntry:
    """Return the part's documents, with picklable arrays.

    For a part that cannot be read, in a run that skips such parts, return a manifest entry with the reason.
    """
    reader = task.plan.reader(task.part)
    try:
        loaded = reader.load(task.plan.targets[0].settings)
    except InputError as error:
        if not task.plan.skip_bad:
            raise
        return reader.skipped(error)
    return replace(loaded, documents=_make_picklable(loaded.documents))


def _make_picklable(documents: Documents) -> Documents:
    """Return the documents with their data as arrays, without word starts, which such runs do not need."""
    return replace(
        documents,
        ids=_copy_array(documents.ids),
        sentence_ends=_copy_array(documents.sentence_ends),
        document_ends=_copy_array(documents.document_ends),
        word_starts=None,
    )


def _copy_array(buffer: Buffer) -> "array[int]":
    """Copy a buffer into an array of the same item size."""
    view = memoryview(buffer)
    found = array("H" if view.itemsize == 2 else "I")
    found.frombytes(view.cast("B"))
    return found


@dataclass(kw_only=True, slots=True)
class DealtRun:
    """Result of reading a run's inputs: manifest entries of the inputs read and left out, and warnings."""

    inputs: list[InputEntry] = field(default_factory=list)
    skipped: list[SkippedEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def corpus(self) -> Corpus:
        """All text parts of the run as a Corpus: those that were read and those that were left out."""
        return Corpus(inputs=tuple(self.inputs), skipped=tuple(self.skipped))


LoadAll = Callable[[Iterable[LoadTask]], Iterable[tuple[LoadTask, LoadedDocuments | SkippedEntry]]]
"""A function that yields each task with its result of ``load_input``, in the tasks' order."""


def deal_run(
    plan: TaskPlan,
    target: Target,
    parts: Sequence[str],
    load_all: LoadAll,
    tell: Callable[[str, int], None],
) -> tuple[DealtRun, tuple[ShardEntry, ...]]:
    """Create all examples and deal them to the output files. Returns the inputs and the entries of the files.

    Raises InputError if a part cannot be read, or if all parts were left out.

    parts: sorted paths.
    load_all: runs ``load_input`` on all tasks, possibly in other processes.
    tell: called with each finished part and its number of examples.
    """
    settings, engine = target.settings, plan.engine
    vocabulary, found = vocabulary_of(plan.tokenizer), DealtRun()
    maker = find_objective(settings.objective).run_maker(len(parts), vocabulary, settings, engine)
    layout = replace(settings.layout, padding_id=vocabulary.padding_id)
    lost: list[int | None] = []

    def writer(number: int, sink: HashingSink) -> ShardWriter:
        path = storage.join(target.dataset.directory, settings.files_of_run[number])
        return make_writer(settings.format, sink, layout, engine, path)

    def write(writers: Sequence[CountingWriter]) -> None:
        # The original program may read its files in a shuffled order, which is part of the random stream.
        tasks = [LoadTask(plan=plan, part=parts[number]) for number in maker.order]
        examples = 0
        for task, loaded in load_all(tasks):
            if isinstance(loaded, SkippedEntry):
                found.skipped.append(loaded)
                found.warnings.append(warn_of_left_out(task.part, loaded))
                continue
            found.inputs.append(loaded.entry)
            found.warnings += loaded.warnings
            made = maker.make(loaded.documents)
            deal_examples(made, examples, writers)
            lost.append(count_lost(made))
            examples += len(made)
            tell(task.part, len(made))
        if not found.inputs:
            refuse_only_skipped(found.skipped)

    names = settings.files_of_run
    with allow_open_files(len(names)):
        entries = write_shard_group(target.dataset, names, layout, writer, write, engine=engine)
    known = [count for count in lost if count is not None]
    return found, add_lost_tokens(entries, sum(known) if len(known) == len(lost) else None)


def deal_examples(examples: MadeExamples, first: int, writers: Sequence[CountingWriter]) -> None:
    """Write the examples to the output files in turn.

    first: number of the first example within the run, which decides which file comes first.
    """
    # Example ``start`` and every len(writers)-th example after it go to the same writer. They are written as
    # a single batch with a stride, since a batch per example would be slow.
    for start in range(min(len(examples), len(writers))):
        batch = examples.batch(start, len(examples), len(writers))
        writers[(first + start) % len(writers)].write(batch)
