"""Sentence parts to shards."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from bertdata._native import Engine
from bertdata.build.dataset_file import GivenSettings, with_file
from bertdata.build.dry_run import Preview, preview
from bertdata.build.estimate import estimate_lines
from bertdata.build.given_parts import find_parts
from bertdata.build.given_tokenizer import check_tokenizer, given_tokenizer
from bertdata.build.part_names import names_with_folders
from bertdata.build.plan import check_shuffle, chosen_settings, plan_targets, plan_warnings
from bertdata.build.task import ShardTask, Target, TaskPlan, TaskResult, run_task
from bertdata.config.settings import ExampleSettings
from bertdata.dataset.lost_text import lost_warnings
from bertdata.dataset.manifest import Manifest
from bertdata.dataset.sources import Sources, find_sources
from bertdata.errors import MissingInputError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.outputs import refuse_inputs
from bertdata.io.process_pool import ProcessPool, run_all_telling
from bertdata.steps.deal import make_dealt
from bertdata.steps.progress import OnProgress, StepProgress, silent, telling_first
from bertdata.steps.shuffle import MadeShards, make_shuffled
from bertdata.steps.source_parts import holds_records, make_parts
from bertdata.steps.values import (
    AnyPath,
    AnyPaths,
    check_engine,
    optional_path,
    path_of,
    paths_of,
    whole_number,
    workers_of,
)
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


def create(
    parts: AnyPaths,
    output: AnyPath,
    *,
    vocab: AnyPath | None = None,
    tokenizer: AnyPath | None = None,
    roles: Mapping[str, str] | None = None,
    recipe: str | None = None,
    phase: int | None = None,
    objective: str | None = None,
    dialect: str | None = None,
    max_seq_length: int | None = None,
    max_predictions_per_seq: int | None = None,
    dupe_factor: int | None = None,
    random_seed: int | None = None,
    masked_lm_prob: float | None = None,
    short_seq_prob: float | None = None,
    lower_case: bool | None = None,
    keep_accents: bool | None = None,
    whole_word_mask: bool | None = None,
    remask: bool | None = None,
    masks: bool | None = None,
    mask_share: float | None = None,
    random_share: float | None = None,
    kept_share: float | None = None,
    blocks: str | None = None,
    format: str | None = None,
    bin_size: int | None = None,
    shuffle: str | None = None,
    num_shards: int | None = None,
    config: AnyPath | None = None,
    skip_bad_inputs: bool = False,
    input_kind: str | None = None,
    language: str | None = None,
    escaped_articles: str | None = None,
    part_size: float | None = None,
    sentences: str | None = None,
    text_field: str | None = None,
    id_field: str | None = None,
    language_field: str | None = None,
    max_record_bytes: int | None = None,
    skip_bad_records: bool | None = None,
    quoting: str | None = None,
    separator: str | None = None,
    no_heading: bool | None = None,
    as_is: bool | None = None,
    exclude: AnyPaths | None = None,
    exclude_ngram: int | None = None,
    dedup: str | None = None,
    eval_share: str | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    progress: OnProgress | None = None,
    **own_settings: Any,
) -> CreateResult:
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
    no argument here. Shards that an earlier run finished are kept. A subclass of UsageError says
    what is wrong with the call, one of DataError what is wrong with a part.
    """
    processes, given = workers_of(workers), paths_of(parts)
    check_engine(engine)
    for name, number in (("phase", phase), ("num_shards", num_shards)):
        if number is not None:
            whole_number(name, number)
    if not given:
        raise MissingInputError("no parts given")
    settings = {
        "objective": objective,
        "dialect": dialect,
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
        "dupe_factor": dupe_factor,
        "random_seed": random_seed,
        "masked_lm_prob": masked_lm_prob,
        "short_seq_prob": short_seq_prob,
        "lower_case": lower_case,
        "keep_accents": keep_accents,
        "whole_word_mask": whole_word_mask,
        "remask": remask,
        "masks": masks,
        "mask_share": mask_share,
        "random_share": random_share,
        "kept_share": kept_share,
        "blocks": blocks,
        "format": format,
        "bin_size": bin_size,
        **own_settings,
    }
    changes = {name: value for name, value in settings.items() if value is not None}
    directory = path_of(output)
    given_of_sources = {
        "input_kind": input_kind,
        "language": language,
        "escaped_articles": escaped_articles,
        "part_size": part_size,
        "sentences": sentences,
        "text_field": text_field,
        "id_field": id_field,
        "language_field": language_field,
        "max_record_bytes": max_record_bytes,
        "skip_bad_records": skip_bad_records,
        "quoting": quoting,
        "separator": separator,
        "no_heading": no_heading,
        "as_is": as_is,
        "exclude": None if exclude is None else paths_of(exclude),
        "exclude_ngram": exclude_ngram,
        "dedup": dedup,
        "eval_share": eval_share,
    }
    of_sources = {name: value for name, value in given_of_sources.items() if value is not None}
    named_roles = tuple(f"{role}={token}" for role, token in (roles or {}).items())
    if holds_records(given, of_sources, skip_bad_inputs):
        flags = GivenSettings(
            recipe=recipe,
            changes=changes,
            vocab=optional_path(vocab),
            tokenizer=optional_path(tokenizer),
            roles=named_roles,
            shuffle=shuffle,
            num_shards=num_shards,
        )
        check_given(flags, phase, optional_path(config), engine, processes)
        given = make_parts(
            given,
            directory,
            of_sources,
            config=optional_path(config),
            workers=processes,
            engine=engine,
            progress=progress or silent,
        )
    run = plan_run(
        given,
        directory,
        vocab=optional_path(vocab),
        tokenizer=optional_path(tokenizer),
        roles=named_roles,
        recipe=recipe,
        phase=phase,
        changes=changes,
        shuffle=shuffle,
        num_shards=num_shards,
        config=optional_path(config),
        skip_bad_inputs=skip_bad_inputs,
        engine=engine,
    )
    return run.make(processes, progress or silent)


def check_given(
    flags: GivenSettings, phase: int | None, config: str | None, engine: Engine | None, workers: int
) -> None:
    """Raise for settings of examples that are wrong, and for a tokeniser that is, before parts are made.

    workers: that will make the parts. Where there are several, the tokeniser is loaded in a process of its
    own, because what that takes would lie in each of them.
    """
    with with_file(config, flags) as given:
        check_shuffle(given.shuffle or "none", given.num_shards)
        _, chosen = chosen_settings(given.recipe, phase, given.changes, given.of_phases)
        settings = list(chosen.values())
        file = given_tokenizer(
            settings[0], given.changes, vocab=given.vocab, tokenizer=given.tokenizer, roles=given.roles
        )
    with ProcessPool(1, apart=workers > 1) as pool:
        list(pool.as_done(_check_loaded, [(file, settings, engine)]))


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
        sources, warnings = find_sources(self.parts), self.warnings()
        with ExitStack() as runs:
            for target in self.plan.targets:
                runs.enter_context(target.dataset.run())
            made = self._make_shards(workers, telling_first(warnings, progress))
            datasets = finish(self.plan, made, sources)
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


def plan_run(
    parts: list[str],
    output: str,
    *,
    vocab: str | None,
    tokenizer: str | None = None,
    roles: Sequence[str] = (),
    recipe: str | None,
    phase: int | None,
    changes: dict[str, Any],
    shuffle: str | None,
    num_shards: int | None,
    config: str | None = None,
    skip_bad_inputs: bool,
    engine: Engine | None,
) -> ShardRun:
    """The run of ``create``. changes: the settings that differ from the recipe's, or from config's."""
    flags = GivenSettings(
        recipe=recipe,
        changes=changes,
        vocab=vocab,
        tokenizer=tokenizer,
        roles=tuple(roles),
        shuffle=shuffle,
        num_shards=num_shards,
    )
    with with_file(config, flags) as given:
        check_shuffle(given.shuffle or "none", given.num_shards)
        chosen, settings = chosen_settings(given.recipe, phase, given.changes, given.of_phases)
        refuse_inputs(output, [*parts, given.vocab, given.tokenizer])
        found, all_settings = find_parts(parts), list(settings.values())
        refuse_inputs(output, found.parts)
        between = None if given.tokenizer is None else find_sources(found.parts).between
        file = given_tokenizer(
            all_settings[0],
            given.changes,
            vocab=given.vocab,
            tokenizer=given.tokenizer,
            roles=given.roles,
            between=between,
        )
    targets = plan_targets(output, chosen, phase, settings, found.parts, file, given.num_shards)
    check_tokenizer(file, all_settings, engine)
    plan = TaskPlan(
        tokenizer=file,
        targets=targets,
        engine=engine,
        skip_bad=skip_bad_inputs,
        names=names_with_folders(found.parts),
    )
    note = engine_note(file, engine)
    return ShardRun(parts=found.parts, plan=plan, notes=found.notes if note is None else (*found.notes, note))


def finish(plan: TaskPlan, shards_made: MadeShards, sources: Sources) -> list[MadeDataset]:
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
            inputs, shards, skipped, vocabulary=plan.tokenizer.path, sources=sources
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
