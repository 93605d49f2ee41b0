"""Sentence parts to shards."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

from bertdata._native import Engine
from bertdata.build.deal import deal_run, load_input
from bertdata.build.dry_run import Preview, preview
from bertdata.build.estimate import estimate_lines
from bertdata.build.given_parts import find_parts
from bertdata.build.given_tokenizer import check_tokenizer
from bertdata.build.plan import plan_warnings
from bertdata.build.shard_task import ShardTask, Target, TaskPlan, TaskResult, keep_task, run_task
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.lost_text import lost_warnings
from bertdata.dataset.manifest import Manifest
from bertdata.dataset.provenance import Provenance, find_provenance
from bertdata.errors import MissingInputError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.outputs import refuse_inputs
from bertdata.io.process_pool import ProcessPool, run_all_telling
from bertdata.steps.create_plan import planned
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.keywords import keywords_of
from bertdata.steps.progress import OnProgress, StepProgress, silent, telling_first
from bertdata.steps.shuffle import CREATING, MadeShards, listed_corpus, make_shuffled
from bertdata.steps.source_parts import holds_records, make_parts
from bertdata.steps.values import optional_path, path_of, paths_of, whole_number, workers_of
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import engine_note, vocabulary_of

STAGE = "creating shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeDataset:
    """A finished dataset: its directory and its manifest.

    ones: the share of its examples with the pair label 1, such as BERT's random pairs, in words.
    Empty where shards were kept of an earlier run, and for objectives without such labels.
    """

    directory: str
    manifest: Manifest
    ones: str = field(default="", compare=False)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the whole dataset: that much of its text is in no example."""
        return lost_warnings(self.directory, self.manifest.as_json())


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateResult:
    """The datasets, one for each phase. Shards kept of an earlier run. Warnings about settings and parts."""

    datasets: tuple[MadeDataset, ...]
    kept: int
    warnings: tuple[str, ...]


@keywords_of(CreateRequest)
def create(request: CreateRequest) -> CreateResult:
    """Make one shard of each part, and the manifest, in ``output``, as ``bertdata create`` does.

    Of a directory that ``segment`` made, its parts to train on are taken. Of sources of records (JSON lines,
    Parquet, Arrow, articles; others by input_kind) parts are made first, in ``output.text``, with segment's
    input_kind, language and settings of records. Exactly one of vocab, a WordPiece vocabulary, and tokenizer,
    a tokenizer.json or a model's directory, is given; roles: of the latter, the tokens that its files do not
    tell, as ``{"mask": "<mask>"}``.
    A setting that is None is that of config, a TOML file (docs/commands.md), else the recipe's; the recipe's
    default is mlperf, or that of the dialect's name.
    A recipe of two phases writes ``output/phase1`` and ``output/phase2``. With shuffle "global" the
    documents of all parts are mixed into num_shards shards. own_settings: those of an objective that have
    no argument here, by name; as keywords they are taken too. Shards that an earlier run finished are kept. A
    subclass of UsageError says what is wrong with the call, one of DataError what is wrong with a part.
    """
    if request.phase is not None:
        whole_number("phase", request.phase)
    if not request.parts:
        raise MissingInputError("no parts given")
    progress = request.progress or silent
    return plan_run(with_parts(request, progress)).make(workers_of(request.workers), progress)


def with_parts(request: CreateRequest, progress: OnProgress) -> CreateRequest:
    """Return the request with parts. Of sources of records they are made, beside the dataset."""
    if not names_records(request):
        return request
    check_given(request)
    return replace(request, parts=make_parts(request, progress))


def names_records(request: CreateRequest) -> bool:
    """True where the request names sources of records, of which parts are to be made."""
    return holds_records(paths_of(request.parts), request.source_settings, request.skip_bad_inputs)


def check_given(request: CreateRequest) -> None:
    """Raise for settings of examples that are wrong, and for a tokeniser that is, before parts are made.

    Where several processes will make the parts, the tokeniser is loaded in a process of its own, because what
    that takes would lie in each of them.
    """
    with planned(request) as plan:
        file = plan.find_tokenizer()
    with ProcessPool(1, apart=workers_of(request.workers) > 1) as pool:
        list(pool.as_done(_check_loaded, [(file, list(plan.settings.values()), request.engine)]))


def _check_loaded(given: tuple[TokenizerFile, list[ExampleSettings], Engine | None]) -> None:
    """The check of a tokeniser for the settings, engine: of all that its file tells."""
    file, settings, engine = given
    vocabulary_of(file)
    check_tokenizer(file, settings, engine)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardRun:
    """A run that is planned: its parts, and what becomes of each. notes: on parts that are left out, and on
    the engine of a tokenizer.json.
    """

    parts: list[str]
    plan: TaskPlan
    notes: tuple[str, ...] = ()

    def previews(self) -> list[Preview]:
        """The shards that the run would make and keep. Nothing is written."""
        return preview(self.plan, self.parts)

    def estimate(self, previews: list[Preview], workers: int) -> list[str]:
        """Lines on the size and time of the shards to make, from a sample."""
        return estimate_lines(self.plan, self.parts, previews, workers)

    def warnings(self) -> tuple[str, ...]:
        """Warnings about the settings, before anything is read."""
        return tuple(plan_warnings(self.plan.tokenizer))

    def make(self, workers: int, progress: OnProgress) -> CreateResult:
        """Make the datasets."""
        provenance, warnings = find_provenance(self.parts), self.warnings()
        with ExitStack() as runs:
            for target in self.plan.targets:
                runs.enter_context(target.dataset.run())
            made = self._make_shards(workers, telling_first(warnings, progress))
            datasets = finish(self.plan, made, provenance)
        of_text = [one for dataset in datasets for one in dataset.warnings]
        return CreateResult(
            datasets=tuple(datasets),
            kept=sum(result.kept for result in made.results),
            warnings=(*warnings, *made.warnings, *of_text),
        )

    def _make_shards(self, workers: int, progress: OnProgress) -> MadeShards:
        if self.plan.targets[0].settings.files_of_run:
            return make_dealt(self.plan, self.parts, workers, progress)
        shards = self.plan.targets[0].dataset.plan.settings.num_shards
        if shards is None:
            results = run_tasks([self.plan.part(part) for part in self.parts], workers, progress)
            warnings = tuple(warning for result in results for warning in result.warnings)
            return MadeShards(corpus=None, results=results, warnings=warnings)
        return make_shuffled(self.plan, self.parts, shards, workers, progress)


def plan_run(request: CreateRequest) -> ShardRun:
    """Return the run that makes shards of the request's parts."""
    output = path_of(request.output)
    with planned(request) as plan:
        given = plan.request
        named = [*paths_of(given.parts), optional_path(given.vocab), optional_path(given.tokenizer)]
        refuse_inputs(output, named)
        found = find_parts(paths_of(given.parts))
        refuse_inputs(output, found.parts)
        between = None if given.tokenizer is None else find_provenance(found.parts).between
        file = plan.find_tokenizer(between)
    targets = plan.targets(found.parts, file, output=output, num_shards=given.num_shards)
    plan.check_tokenizer(file)
    note = engine_note(file, given.engine)
    return ShardRun(
        parts=found.parts,
        plan=plan.tasks(found.parts, file, targets),
        notes=found.notes if note is None else (*found.notes, note),
    )


def finish(plan: TaskPlan, shards_made: MadeShards, provenance: Provenance) -> list[MadeDataset]:
    """The datasets, their manifests written."""
    corpus, results = shards_made.corpus, shards_made.results
    skipped = [result.skipped for result in results if result.skipped is not None]
    made = []
    for index, target in enumerate(plan.targets):
        entries = [result.entries[index] for result in results if result.skipped is None]
        inputs, shards = [entry for entry, _ in entries], [shard for _, found in entries for shard in found]
        if corpus is not None:
            inputs, skipped = list(corpus.inputs), list(corpus.skipped)
        manifest = target.dataset.finish(
            inputs, shards, skipped, vocabulary=plan.tokenizer.path, provenance=provenance
        )
        ones = _share_of_ones(target, index, results)
        made.append(MadeDataset(directory=target.dataset.directory, manifest=manifest, ones=ones))
    return made


def _share_of_ones(target: Target, index: int, results: Sequence[TaskResult]) -> str:
    """The words for MadeDataset's ``ones``. index: of the target."""
    counted = [result.ones[index] if result.ones else None for result in results if result.skipped is None]
    ones = [count for count in counted if count is not None]
    examples = sum(shard.examples for one in results if not one.skipped for shard in one.entries[index][1])
    if not examples or len(ones) < len(counted):
        return ""
    return f"{sum(ones) / examples:.1%} {find_objective(target.settings.objective).label_one}"


def run_tasks(tasks: list[ShardTask], workers: int, progress: OnProgress) -> list[TaskResult]:
    """Run all tasks, those of large parts first, so that no worker ends long after the others."""
    parts = [task.inputs[0] for task in tasks]
    sizes = dict(zip(parts, storage.each(parts, storage.size), strict=True))
    total = sum(sizes.values())
    all_shards = sum(len(task.shards(target)) for task in tasks for target in task.plan.targets)
    shown = _ShardProgress(progress, total, all_shards)
    results: list[TaskResult] = []
    largest_first = sorted(tasks, key=lambda task: -sizes[task.inputs[0]])
    with closing(run_all_telling(run_task, largest_first, workers, shown.under_way)) as finished:
        for result in finished:
            shown.finish(result)
            results.append(result)
    return results


class _ShardProgress:
    """The progress of a run: parts that are finished, and those under way, in bytes of their text."""

    def __init__(self, progress: OnProgress, total: int, all_shards: int) -> None:
        self._progress = progress
        self._finished_bytes = 0
        self._now = StepProgress(stage=STAGE, done=0, total=total, all_shards=all_shards)
        progress(self._now)

    def under_way(self, amount: int) -> None:
        """So many bytes of unfinished parts are done."""
        self._tell(self._finished_bytes + amount, finished="", warnings=())

    def finish(self, result: TaskResult) -> None:
        """A part is finished, or left out."""
        self._finished_bytes += (result.skipped or result.entries[0][0]).bytes
        made = sum(shard.tokens for shard in result.shards) if not result.kept else 0
        self._tell(
            self._finished_bytes,
            finished=result.line,
            warnings=result.warnings,
            shards=self._now.shards + len(result.shards),
            tokens=self._now.tokens + made,
        )

    def _tell(self, done: int, **changes: Any) -> None:
        # One part's end must not take away what is done of the others.
        self._now = self._now._replace(done=max(self._now.done, done), **changes)
        self._progress(self._now)


def make_dealt(plan: TaskPlan, parts: Sequence[str], workers: int, progress: OnProgress) -> MadeShards:
    """Make the files of the run, all or none. Those of a finished run on the same parts are kept."""
    [target] = plan.targets
    with ProcessPool(min(workers, len(parts))) as pool:
        if (listed := listed_corpus(plan, parts, pool)) is not None:
            kept = keep_task(plan.of_run(listed.entry, parts))
            if kept is not None:
                return MadeShards(corpus=listed, results=[kept])
        sizes = dict(zip(parts, storage.each(list(parts), storage.size), strict=True))
        total, done = sum(sizes.values()), 0
        progress(StepProgress(stage=CREATING, done=0, total=total))

        def tell(part: str, examples: int) -> None:
            nonlocal done
            done += sizes[part]
            finished = f"dealt {storage.base_name(part)} ({examples} examples)"
            progress(StepProgress(stage=CREATING, done=done, total=total, finished=finished))

        found, shards = deal_run(plan, target, parts, lambda tasks: pool.in_order(load_input, tasks), tell)
    corpus = found.corpus
    result = TaskResult(entries=((corpus.entry, shards),))
    return MadeShards(corpus=corpus, results=[result], warnings=tuple(found.warnings))
