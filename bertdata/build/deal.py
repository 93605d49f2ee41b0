"""The files of a whole run: examples of all inputs, made by one random stream and dealt to files in turn.

Inputs are read by several processes. Examples are made and written by one.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bertdata.build.documents import LoadedDocuments
from bertdata.build.shard_task import Target, TaskPlan, left_out
from bertdata.build.shuffle.corpus import Corpus
from bertdata.dataset.lost_text import count_lost, with_lost
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.shard_group import write_shard_group
from bertdata.dataset.writer import refuse_nothing
from bertdata.errors import InputError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import HashingSink
from bertdata.io.open_files import many_open_files
from bertdata.records import Buffer, Documents, MadeExamples
from bertdata.shards.containers import make_writer
from bertdata.shards.protocol import ShardWriter
from bertdata.shards.write import CountingWriter
from bertdata.tokens.load import vocabulary_of


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadTask:
    """Read one part of a run. Picklable work for a worker."""

    plan: TaskPlan
    part: str


def load_input(task: LoadTask) -> LoadedDocuments | SkippedEntry:
    """The part's documents, picklable. The entry of one that cannot be read, where the run leaves it out."""
    reader = task.plan.reader(task.part)
    try:
        loaded = reader.load(task.plan.targets[0].settings)
    except InputError as error:
        if not task.plan.skip_bad:
            raise
        return reader.skipped(error)
    return replace(loaded, documents=_picklable(loaded.documents))


def _picklable(documents: Documents) -> Documents:
    """The documents in arrays. Word starts, which no such run needs, are left out."""
    return replace(
        documents,
        ids=_array(documents.ids),
        sentence_ends=_array(documents.sentence_ends),
        document_ends=_array(documents.document_ends),
        word_starts=None,
    )


def _array(buffer: Buffer) -> "array[int]":
    view = memoryview(buffer)
    found = array("H" if view.itemsize == 2 else "I")
    found.frombytes(view.cast("B"))
    return found


@dataclass(kw_only=True, slots=True)
class DealtRun:
    """The inputs that were read so far, those left out, and warnings about them."""

    inputs: list[InputEntry] = field(default_factory=list)
    skipped: list[SkippedEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def corpus(self) -> Corpus:
        """All inputs together."""
        return Corpus(inputs=tuple(self.inputs), skipped=tuple(self.skipped))


LoadAll = Callable[[Iterable[LoadTask]], Iterable[tuple[LoadTask, LoadedDocuments | SkippedEntry]]]
"""Each task with the result of ``load_input``, in the order of the tasks."""


def deal_run(
    plan: TaskPlan,
    target: Target,
    parts: Sequence[str],
    load_all: LoadAll,
    tell: Callable[[str, int], None],
) -> tuple[DealtRun, tuple[ShardEntry, ...]]:
    """Make the files of the run. parts: sorted. tell: called with each finished part and its examples.

    InputError as of load_input, and where every part was left out.
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
        tasks = [LoadTask(plan=plan, part=parts[number]) for number in maker.order]
        examples = 0
        for task, loaded in load_all(tasks):
            if isinstance(loaded, SkippedEntry):
                found.skipped.append(loaded)
                found.warnings.append(left_out(task.part, loaded))
                continue
            found.inputs.append(loaded.entry)
            found.warnings += loaded.warnings
            made = maker.make(loaded.documents)
            deal(made, examples, writers)
            lost.append(count_lost(made))
            examples += len(made)
            tell(task.part, len(made))
        if not found.inputs:
            refuse_nothing(found.skipped)

    names = settings.files_of_run
    with many_open_files(len(names)):
        entries = write_shard_group(target.dataset, names, layout, writer, write, engine=engine)
    known = [count for count in lost if count is not None]
    return found, with_lost(entries, sum(known) if len(known) == len(lost) else None)


def deal(examples: MadeExamples, first: int, writers: Sequence[CountingWriter]) -> None:
    """Write each example with the next writer in turn. first: the number of the first one in the run."""
    for start in range(min(len(examples), len(writers))):
        batch = examples.batch(start, len(examples), len(writers))
        writers[(first + start) % len(writers)].write(batch)
