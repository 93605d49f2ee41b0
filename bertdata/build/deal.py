"""Creation of a whole dataset with a single random generator, as ELECTRA's program does (``--as-original``).

The documents of all parts (input files) use the same random generator one after another. The examples are
dealt to the output files, that is, written in turn: example 0 to file 0, example 1 to file 1, and so on.
Several processes read and tokenise the parts. Only one process creates and writes examples, because the
random numbers of an example depend on the example before it.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bertdata.build.documents import LoadedDocuments
from bertdata.build.large_document import count_largest_document
from bertdata.build.shard_task import Target, TaskPlan, make_skipped_warning
from bertdata.build.shuffle.corpus import Corpus
from bertdata.dataset.lost_text import add_lost_tokens, count_lost
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import raise_if_inputs_skipped
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
    """Read and tokenise the part of a task. Return its documents in a form that can be pickled.

    In a run that leaves out unreadable parts, such a part gives a manifest entry with the reason instead.
    """
    reader = task.plan.make_reader(task.part)
    try:
        loaded = reader.load(task.plan.targets[0].settings)
    except InputError as error:
        if not task.plan.skip_bad:
            raise
        return reader.make_skipped_entry(error)
    return replace(loaded, documents=_make_picklable(loaded.documents))


def _make_picklable(documents: Documents) -> Documents:
    """Return the documents with their data copied to arrays, which can be sent to another process.

    Word starts are left out, because runs with ``--as-original`` do not need them.
    """
    return replace(
        documents,
        ids=_copy_array(documents.ids),
        sentence_ends=_copy_array(documents.sentence_ends),
        document_ends=_copy_array(documents.document_ends),
        word_starts=None,
    )


def _copy_array(buffer: Buffer) -> "array[int]":
    """Copy a buffer of 16-bit or 32-bit integers into an array of the same integer size."""
    view = memoryview(buffer)
    found = array("H" if view.itemsize == 2 else "I")
    found.frombytes(view.cast("B"))
    return found


@dataclass(kw_only=True, slots=True)
class RunInputs:
    """The inputs of a finished run.

    inputs: manifest entries of the parts that were read.
    skipped: manifest entries of the parts that were left out.
    warnings: lines for the user.
    largest_document: number of tokens in the largest document of all parts.
    """

    inputs: list[InputEntry] = field(default_factory=list)
    skipped: list[SkippedEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    largest_document: int = 0

    @property
    def corpus(self) -> Corpus:
        """All text parts of the run as a Corpus: those that were read and those that were left out."""
        return Corpus(inputs=tuple(self.inputs), skipped=tuple(self.skipped))


LoadAll = Callable[[Iterable[LoadTask]], Iterable[tuple[LoadTask, LoadedDocuments | SkippedEntry]]]
"""Type of a function that applies ``load_input`` to tasks.

It yields each task with its result, in the order of the tasks.
"""


def write_files_in_turn(
    plan: TaskPlan,
    target: Target,
    parts: Sequence[str],
    load_all: LoadAll,
    tell: Callable[[str, int], None],
) -> tuple[RunInputs, tuple[ShardEntry, ...]]:
    """Create the examples of all parts and write them to the output files in turn.

    Returns the run's inputs, and the manifest entries of the output files.

    parts: paths of the parts, sorted.
    load_all: function that applies ``load_input`` to all tasks, possibly in other processes.
    tell: function that is called with each finished part and its number of examples.

    Raises InputError if a part cannot be read, or if all parts were left out.
    """
    settings, engine = target.settings, plan.engine
    vocabulary, found = vocabulary_of(plan.tokenizer), RunInputs()
    maker = find_objective(settings.objective).run_maker(len(parts), vocabulary, settings, engine)
    layout = replace(settings.layout, padding_id=vocabulary.padding_id)
    lost: list[int | None] = []

    def open_writer(number: int, sink: HashingSink) -> ShardWriter:
        path = storage.join(target.dataset.directory, settings.files_of_run[number])
        return make_writer(settings.format, sink, layout, engine, path)

    def write_all(writers: Sequence[CountingWriter]) -> None:
        # ELECTRA's program shuffles the order of its input files with the same random generator. The order is
        # therefore part of what must be reproduced.
        tasks = [LoadTask(plan=plan, part=parts[number]) for number in maker.order]
        examples = 0
        for task, loaded in load_all(tasks):
            if isinstance(loaded, SkippedEntry):
                found.skipped.append(loaded)
                found.warnings.append(make_skipped_warning(task.part, loaded))
                continue
            found.inputs.append(loaded.entry)
            found.warnings += loaded.warnings
            found.largest_document = max(found.largest_document, count_largest_document(loaded.documents))
            made = maker.make(loaded.documents)
            write_examples_in_turn(made, examples, writers)
            lost.append(count_lost(made))
            examples += len(made)
            tell(task.part, len(made))
        if not found.inputs:
            raise_if_inputs_skipped(found.skipped)

    names = settings.files_of_run
    with allow_open_files(len(names)):
        entries = write_shard_group(target.dataset, names, layout, open_writer, write_all, engine=engine)
    known = [count for count in lost if count is not None]
    return found, add_lost_tokens(entries, sum(known) if len(known) == len(lost) else None)


def write_examples_in_turn(examples: MadeExamples, first: int, writers: Sequence[CountingWriter]) -> None:
    """Write the examples to the output files in turn.

    first: number of the first of these examples, counted over the whole run. It decides which file comes
        first.
    """
    # The example ``start`` and every len(writers)-th example after it go to the same file. They are written
    # together as one batch with a step width, because writing a batch for each example would be slow.
    for start in range(min(len(examples), len(writers))):
        batch = examples.batch(start, len(examples), len(writers))
        writers[(first + start) % len(writers)].write(batch)
