"""The plan of a run: settings, parts, and the dataset of each phase."""

from collections.abc import Mapping
from typing import Any

from bertdata.build.part_names import name_parts
from bertdata.build.shard_task import Target
from bertdata.config.dataset_settings import records_of
from bertdata.config.recipes import Recipe, Settings, find_recipe
from bertdata.config.settings import LONGEST_SEQUENCE, ExampleSettings, check, check_known, typed_values
from bertdata.dataset.manifest import DatasetPlan
from bertdata.dataset.writer import Dataset
from bertdata.errors import SettingsError
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.assets import name_warnings
from bertdata.records import Vocabulary
from bertdata.shards.containers import find_container
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.fit import casing_warnings
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.model_directory.keys import tokenizer_warnings

SHUFFLES = ("none", "global")
"""Whether documents of all parts are mixed."""


def chosen_settings(
    recipe_name: str | None,
    phase: int | None,
    changes: dict[str, Any],
    of_phases: Mapping[int, dict[str, Any]] | None = None,
) -> tuple[Recipe | None, dict[str, ExampleSettings]]:
    """The recipe and its settings by output sub-directory, the changes applied. of_phases: a phase's own.

    A dialect without a recipe takes the recipe of its name. A length given for a recipe of two
    phases makes it one data set, in the output directory itself. An objective that no recipe is for has its
    own settings and no recipe.
    """
    recipe = find_recipe(recipe_name or changes.get("dialect") or "mlperf")
    objective = changes.get("objective", recipe.objective)
    if objective != recipe.objective:
        check_without_recipe(objective, recipe_name, phase)
        check(not of_phases, f"the objective {objective} has no recipe, so no settings of phase1 or phase2")
        return None, {"": _settings(objective, changes)}
    selected = recipe.select(phase)
    check(
        not of_phases or len(recipe.phases) > 1,
        f"recipe {recipe.name} has one phase, so no settings of phase1 or phase2",
    )
    shape = recipe.varied & set(changes)
    if len(selected) > 1 and shape:
        if shape != recipe.varied:
            raise SettingsError(
                f"recipe {recipe.name} has two phases: give --phase to change one of them, or both "
                "--max-seq-length and --max-predictions-per-seq for one data set of that length"
            )
        selected = {"": recipe.phases[0]}
        of_phases = None
    numbers = range(1, 3) if phase is None else [phase]
    own_changes = [(of_phases or {}).get(number, {}) for number in numbers]
    return recipe, {
        place: _settings(objective, {**own, **changes, **more})
        for (place, own), more in zip(selected.items(), own_changes, strict=False)
    }


def check_without_recipe(objective: str, recipe: str | None, phase: int | None) -> None:
    """SettingsError for a recipe, or a phase of one, beside an objective that is not the recipe's."""
    find_objective(objective)
    for flag, value in (("--recipe", recipe), ("--phase", phase)):
        if value is not None:
            raise SettingsError(
                f"{flag} {value} goes with the objective of the recipe; with --objective {objective} leave "
                "it out and give the settings themselves, which have defaults"
            )


def _settings(objective: str, chosen: Settings) -> ExampleSettings:
    """The settings of one dataset. What is not chosen has the objective's default."""
    found, chosen = find_objective(objective), {"objective": objective, **chosen}
    check_known(found.settings_type, chosen)
    settings = found.settings_type(**typed_values(found.settings_type, chosen))
    for name in found.batch_type.sizes():
        size = settings.layout.size(name)
        check(1 <= size <= LONGEST_SEQUENCE, f"{name} is {size}, expected 1 to {LONGEST_SEQUENCE}")
    return settings


def check_shuffle(shuffle: str, num_shards: int | None) -> None:
    """SettingsError for a shuffle that does not exist, and for one without its number of shards."""
    if shuffle not in SHUFFLES:
        raise SettingsError(f"shuffle is {shuffle!r}, expected one of {', '.join(SHUFFLES)}")
    if shuffle == "global" and num_shards is None:
        raise SettingsError("--shuffle global needs --num-shards N, the number of shards to make")
    if shuffle == "none" and num_shards is not None:
        raise SettingsError(
            "--num-shards goes with --shuffle global; without it, each part becomes one shard"
        )
    if num_shards is not None and num_shards < 1:
        raise SettingsError(f"num_shards is {num_shards}, expected 1 or more")


def plan_targets(
    output: str,
    recipe: Recipe | None,
    phase: int | None,
    settings: dict[str, ExampleSettings],
    parts: list[str],
    tokenizer: TokenizerFile,
    num_shards: int | None = None,
) -> tuple[Target, ...]:
    """The datasets to make, one for each phase. num_shards: of a global shuffle, None: one for each part."""
    if not output:
        raise SettingsError("the output directory's name is empty")
    names = tuple(sorted(name_parts(parts).values()))
    numbered = len(settings) > 1
    vocabulary, targets = vocabulary_of(tokenizer), []
    record = None if isinstance(tokenizer, VocabularyFile) else tokenizer.record(vocabulary)
    for number, (place, given) in enumerate(settings.items(), 1):
        chosen = _fitting(given, vocabulary)
        if chosen.files_of_run and num_shards is not None:
            raise SettingsError("--as-original deals the examples to files of its own; leave out --shuffle")
        plan = DatasetPlan(
            recipe=recipe.name if recipe else None,
            phase=number if numbered else phase if recipe and len(recipe.phases) > 1 else None,
            settings=records_of(chosen, vocabulary, num_shards, record),
            inputs=names,
        )
        directory = storage.join(output, place) if place else output
        dataset = Dataset(directory, plan, within=output if place else None)
        targets.append(Target(dataset=dataset, settings=chosen))
    return tuple(targets)


def _fitting(settings: ExampleSettings, vocabulary: Vocabulary) -> ExampleSettings:
    """The settings, with word starts where examples need and the container holds them.

    SettingsError for examples that the container does not hold.
    """
    container, kind = find_container(settings.format), find_objective(settings.objective).batch_type
    container.check_examples(kind, settings.objective, has_masks=getattr(settings, "masks", False))
    return _with_word_starts(settings, vocabulary) if container.holds_word_starts else settings


def _with_word_starts(settings: ExampleSettings, vocabulary: Vocabulary) -> ExampleSettings:
    """The settings, with word starts in examples without masks, where the ids do not tell whole words."""
    objective, told = find_objective(settings.objective), vocabulary.continues_word is not None
    if WORD_STARTS in objective.unlearned and told:
        raise SettingsError(
            f"objective {objective.name}: the ids of {vocabulary.name} tell where words start; "
            f"expected {objective.name.removesuffix('_word_starts')}"
        )
    if objective.of_words and not told and not getattr(settings, "masks", True):
        return settings.with_changes(objective=objective.of_words)
    return settings


def plan_warnings(tokenizer: TokenizerFile) -> list[str]:
    """Warnings before anything is read.

    They are about a vocabulary other than its name says, or of the other casing, and about keys of a model's
    tokenizer_config.json that are not read.
    """
    directory = tokenizer.path if storage.is_directory(tokenizer.path) else storage.parent(tokenizer.path)
    unread = tokenizer_warnings(directory or ".")
    if not isinstance(tokenizer, VocabularyFile):
        return unread
    vocabulary = vocabulary_of(tokenizer)
    named = name_warnings(tokenizer.path, vocabulary.md5)
    return [*unread, *named, *casing_warnings(vocabulary, tokenizer.lower_case)]
