"""The step that creates shards of training examples from text parts, that is, files with one sentence per
line.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

from bertdata._native import Engine
from bertdata.build.deal import load_input, write_files_in_turn
from bertdata.build.dry_run import Preview, preview_shards
from bertdata.build.estimate import format_estimate
from bertdata.build.given_parts import find_parts
from bertdata.build.given_tokenizer import check_tokenizer
from bertdata.build.large_document import make_large_document_warning
from bertdata.build.plan import list_plan_warnings
from bertdata.build.shard_task import ShardTask, Target, TaskPlan, TaskResult, find_finished_result, run_task
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.lost_text import check_lost_text
from bertdata.dataset.manifest import Manifest
from bertdata.dataset.provenance import Provenance, find_provenance
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.process_pool import ProcessPool, run_all_with_progress
from bertdata.steps.create_plan import plan_request
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.keywords import accept_keywords
from bertdata.steps.memory_sources import open_records
from bertdata.steps.progress import OnProgress, StepProgress, add_warnings_first, choose_progress
from bertdata.steps.shuffle import CREATING, MadeShards, find_listed_corpus, make_shuffled
from bertdata.steps.source_parts import has_record_sources, make_parts
from bertdata.steps.values import (
    check_positive_integer,
    convert_optional_path,
    convert_path,
    count_workers,
    list_paths,
)
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import describe_engine, vocabulary_of

STAGE = "creating shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeDataset:
    """A finished dataset: its directory and manifest.

    ones: sentence for the user about the share of examples whose pair label is 1. For BERT's objective these
        are the pairs with a random second text. Empty if shards of an earlier run were kept, and for
        objectives without pair labels.
    remarks: warnings of the run that made the dataset, which do not follow from the manifest. They are about
        a document that is most of the text, and about inputs that have changed since an earlier run.
    """

    directory: str
    manifest: Manifest
    ones: str = field(default="", compare=False)
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the whole dataset, such as that much of its text is in no example."""
        return [*self.remarks, *check_lost_text(self.directory, self.manifest.as_json())]


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateResult:
    """The result of ``create``.

    datasets: the finished datasets. There is one for each phase of the recipe.
    kept: number of shards that an earlier run had finished.
    warnings: warnings about settings, parts and datasets.
    """

    datasets: tuple[MadeDataset, ...]
    kept: int
    warnings: tuple[str, ...]


@accept_keywords(CreateRequest)
def create(request: CreateRequest) -> CreateResult:
    """Create a dataset in ``output``: one shard per part, and a manifest, as ``bertdata create`` does.

    The parts may be text files with one sentence per line, or a directory written by ``segment``, whose
    training parts are used. They may also be records (JSON lines, Parquet, Arrow, articles, and other kinds
    if input_kind names them). The text of records is first written as text parts to ``output.text``, with the
    settings of ``segment``. Records in memory are given as for ``segment``.

    Exactly one tokeniser must be given. vocab is a WordPiece vocabulary. tokenizer is a tokenizer.json or a
    model's directory. If its files do not name all special tokens, roles names the others, as in ``{"mask":
    "<mask>"}``.

    A setting that is None is taken from the TOML file ``config`` (docs/commands.md). If the file does not
    have it, it is taken from the recipe. The default recipe is mlperf, or with a dialect, the recipe of the
    same name. A recipe with two phases writes ``output/phase1`` and ``output/phase2``. With shuffle "global",
    the documents of all parts are mixed into num_shards shards.

    Settings of a user-defined objective may be given as further keywords, or by name in own_settings. Shards
    that an earlier run finished are kept. Raises UsageError (or a subclass) if the call is wrong, and
    DataError (or a subclass) if a part is at fault.
    """
    if request.phase is not None:
        check_positive_integer("phase", request.phase)
    progress = choose_progress(request.progress)
    with open_records(request, "parts") as opened:
        return plan_run(make_request_parts(opened, progress)).make(count_workers(request.workers), progress)


def make_request_parts(request: CreateRequest, progress: OnProgress) -> CreateRequest:
    """Return the request with text parts (files with one sentence per line) as its input.

    If the request names records, their text is first written as text parts next to the dataset.
    """
    if not has_records(request):
        return request
    check_given_fields(request)
    return replace(request, parts=make_parts(request, progress))


def has_records(request: CreateRequest) -> bool:
    """Return True if the request names records, which must first be converted to text parts."""
    return has_record_sources(list_paths(request.parts), request.source_settings, request.skip_bad_inputs)


def check_given_fields(request: CreateRequest) -> None:
    """Raise an error if the settings of examples or the tokeniser are wrong, before text parts are written.

    If several processes will write the parts, the tokeniser is loaded in a separate process. Otherwise each
    worker that is forked later would also take up the tokeniser's memory.
    """
    with plan_request(request) as plan:
        file = plan.find_tokenizer()
    with ProcessPool(1, apart=count_workers(request.workers) > 1) as pool:
        list(pool.as_done(_check_tokenizer_loads, [(file, list(plan.settings.values()), request.engine)]))


def _check_tokenizer_loads(given: tuple[TokenizerFile, list[ExampleSettings], Engine | None]) -> None:
    """Load a tokeniser completely and check that it suits the settings. Runs in a worker process.

    given: the tokeniser, the settings of each dataset, and the engine.
    """
    file, settings, engine = given
    vocabulary_of(file)
    check_tokenizer(file, settings, engine)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardRun:
    """A planned run of ``create``.

    parts: paths of the text parts.
    notes: lines for the user about parts that are left out, and about the program that runs a tokenizer.json.
    """

    parts: list[str]
    plan: TaskPlan
    notes: tuple[str, ...] = ()

    def previews(self) -> list[Preview]:
        """Return the shards that the run would write or keep, without writing anything."""
        return preview_shards(self.plan, self.parts)

    def estimate(self, previews: list[Preview], workers: int) -> list[str]:
        """Return lines that estimate the size of the output and the time, from a sample of the text."""
        return format_estimate(self.plan, self.parts, previews, workers)

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the settings. No text is read."""
        return tuple(list_plan_warnings(self.plan.tokenizer))

    def make(self, workers: int, progress: OnProgress) -> CreateResult:
        """Create the datasets that were planned.

        workers: number of processes.
        """
        provenance, warnings = find_provenance(self.parts), self.warnings()
        with ExitStack() as runs:
            # Lock and claim all directories before any work, so that a wrong one fails the run at once.
            for target in self.plan.targets:
                runs.enter_context(target.dataset.run())
            made = self._make_shards(workers, add_warnings_first(warnings, progress))
            datasets = finish_datasets(self.plan, made, provenance)
        of_text = [one for dataset in datasets for one in dataset.warnings]
        return CreateResult(
            datasets=tuple(datasets),
            kept=sum(result.kept for result in made.results),
            warnings=(*warnings, *made.warnings, *of_text),
        )

    def _make_shards(self, workers: int, progress: OnProgress) -> MadeShards:
        """Create the shards in one of three ways.

        With a global shuffle, the documents of all parts are mixed. If the examples must come from a single
        random stream, as in ELECTRA's program, they are written to a fixed number of files in turn. Otherwise
        a shard is made from each part.
        """
        if self.plan.targets[0].settings.files_of_run:
            return make_shards_in_turn(self.plan, self.parts, workers, progress)
        shards = self.plan.targets[0].dataset.plan.settings.num_shards
        if shards is None:
            results = run_tasks([self.plan.make_part_task(part) for part in self.parts], workers, progress)
            warnings = tuple(warning for result in results for warning in result.warnings)
            return MadeShards(corpus=None, results=results, warnings=warnings)
        return make_shuffled(self.plan, self.parts, shards, workers, progress)


def plan_run(request: CreateRequest) -> ShardRun:
    """Return the planned run that creates shards from the request's parts."""
    output = convert_path(request.output)
    with plan_request(request) as plan:
        given = plan.request
        named = [
            *list_paths(given.parts),
            convert_optional_path(given.vocab),
            convert_optional_path(given.tokenizer),
        ]
        refuse_input_as_output(output, named)
        found = find_parts(list_paths(given.parts))
        refuse_input_as_output(output, found.parts)
        between = None if given.tokenizer is None else find_provenance(found.parts).between
        file = plan.find_tokenizer(between)
    targets = plan.targets(found.parts, file, output=output, num_shards=given.num_shards)
    plan.check_tokenizer(file)
    note = describe_engine(file, given.engine)
    return ShardRun(
        parts=found.parts,
        plan=plan.tasks(found.parts, file, targets),
        notes=found.notes if note is None else (*found.notes, note),
    )


def finish_datasets(plan: TaskPlan, shards_made: MadeShards, provenance: Provenance) -> list[MadeDataset]:
    """Write the manifests of the created datasets, and return the datasets."""
    corpus, results = shards_made.corpus, shards_made.results
    skipped = [result.skipped for result in results if result.skipped is not None]
    known = [result.largest_document for result in results if result.largest_document is not None]
    largest, length = max(known, default=None), plan.targets[0].settings.max_seq_length
    made = []
    for index, target in enumerate(plan.targets):
        entries = [result.entries[index] for result in results if result.skipped is None]
        inputs, shards = [entry for entry, _ in entries], [shard for _, found in entries for shard in found]
        if corpus is not None:
            inputs, skipped = list(corpus.inputs), list(corpus.skipped)
        remarks = target.dataset.list_changed_inputs(inputs)
        # The datasets of two phases are made of the same text, so this warning is given once.
        large = None if index else make_large_document_warning(largest, inputs, length)
        remarks += [] if large is None else [large]
        manifest = target.dataset.finish(
            inputs, shards, skipped, vocabulary=plan.tokenizer.path, provenance=provenance
        )
        made.append(
            MadeDataset(
                directory=target.dataset.directory,
                manifest=manifest,
                ones=_describe_label_share(target, index, results),
                remarks=tuple(remarks),
            )
        )
    return made


def _describe_label_share(target: Target, index: int, results: Sequence[TaskResult]) -> str:
    """Return a sentence about the share of examples with pair label 1.

    The sentence is empty if a shard was kept from an earlier run, because its labels are not counted again.
    """
    counted = [result.ones[index] if result.ones else None for result in results if result.skipped is None]
    ones = [count for count in counted if count is not None]
    examples = sum(shard.examples for one in results if not one.skipped for shard in one.entries[index][1])
    if not examples or len(ones) < len(counted):
        return ""
    return f"{sum(ones) / examples:.1%} {find_objective(target.settings.objective).label_one}"


def run_tasks(tasks: list[ShardTask], workers: int, progress: OnProgress) -> list[TaskResult]:
    """Run all tasks. The largest parts come first, so that all workers finish at about the same time."""
    parts = [task.inputs[0] for task in tasks]
    sizes = dict(zip(parts, storage.map_paths(parts, storage.read_size), strict=True))
    total = sum(sizes.values())
    all_shards = sum(len(task.shards(target)) for task in tasks for target in task.plan.targets)
    shown = _ShardProgress(progress, total, all_shards)
    results: list[TaskResult] = []
    largest_first = sorted(tasks, key=lambda task: -sizes[task.inputs[0]])
    with closing(run_all_with_progress(run_task, largest_first, workers, shown.report_under_way)) as finished:
        for result in finished:
            shown.finish(result)
            results.append(result)
    return results


class _ShardProgress:
    """Callback that reports a run's progress in bytes of text, of finished parts and of parts in work."""

    def __init__(self, progress: OnProgress, total: int, all_shards: int) -> None:
        self._progress = progress
        self._finished_bytes = 0
        self._now = StepProgress(stage=STAGE, done=0, total=total, all_shards=all_shards)
        progress(self._now)

    def report_under_way(self, amount: int) -> None:
        """Report how many bytes of the unfinished parts are done."""
        self._report(self._finished_bytes + amount, finished="", warnings=())

    def finish(self, result: TaskResult) -> None:
        """Report that a part is finished or left out."""
        self._finished_bytes += (result.skipped or result.entries[0][0]).bytes
        made = sum(shard.tokens for shard in result.shards) if not result.kept else 0
        self._report(
            self._finished_bytes,
            finished=result.line,
            warnings=result.warnings,
            shards=self._now.shards + len(result.shards),
            tokens=self._now.tokens + made,
        )

    def _report(self, done: int, **changes: Any) -> None:
        """Pass the progress on to the caller's callback."""
        # finish() reports only the bytes of finished parts. That may be less than the last report of
        # report_under_way(), which includes unfinished parts. Progress must not go backwards, so the larger
        # number is kept.
        self._now = self._now._replace(done=max(self._now.done, done), **changes)
        self._progress(self._now)


def make_shards_in_turn(
    plan: TaskPlan, parts: Sequence[str], workers: int, progress: OnProgress
) -> MadeShards:
    """Create all files of a run that writes its examples to the files in turn, as ELECTRA's program does.

    All inputs share one random stream. Either all files are written or none. The files of a finished run on
    the same parts are kept. ``bertdata.build.deal`` describes the order of the examples.
    """
    [target] = plan.targets
    with ProcessPool(min(workers, len(parts))) as pool:
        if (listed := find_listed_corpus(plan, parts, pool)) is not None:
            kept = find_finished_result(plan.make_run_task(listed.entry, parts))
            if kept is not None:
                return MadeShards(corpus=listed, results=[kept])
        sizes = dict(zip(parts, storage.map_paths(list(parts), storage.read_size), strict=True))
        total, done = sum(sizes.values()), 0
        progress(StepProgress(stage=CREATING, done=0, total=total))

        def report_part(part: str, examples: int) -> None:
            """Report how many examples of a part are done."""
            nonlocal done
            done += sizes[part]
            finished = f"dealt {storage.get_base_name(part)} ({examples} examples)"
            progress(StepProgress(stage=CREATING, done=done, total=total, finished=finished))

        found, shards = write_files_in_turn(
            plan, target, parts, lambda tasks: pool.in_order(load_input, tasks), report_part
        )
    corpus = found.corpus
    result = TaskResult(entries=((corpus.entry, shards),), largest_document=found.largest_document)
    return MadeShards(corpus=corpus, results=[result], warnings=tuple(found.warnings))
