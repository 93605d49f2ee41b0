"""The plan of a run of ``create``: the checked settings of each dataset that the run writes.

A recipe (the settings of a published data set) may have two phases. Each phase is a dataset of its own.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from bertdata.build.part_names import name_parts
from bertdata.build.shard_task import Target
from bertdata.config.dataset_settings import make_dataset_settings
from bertdata.config.recipes import Recipe, Settings, find_recipe
from bertdata.config.settings import (
    LONGEST_SEQUENCE,
    ExampleSettings,
    check_setting_names,
    convert_to_field_types,
    require,
)
from bertdata.dataset.manifest import DatasetPlan
from bertdata.dataset.writer import Dataset
from bertdata.errors import SettingsError
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.assets import warn_about_local_name
from bertdata.records import Vocabulary
from bertdata.shards.containers import find_container
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.fit import warn_of_casing
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.model_directory.keys import warn_of_unread_keys

SHUFFLES = ("none", "global")
"""Values of --shuffle. "global" mixes the documents of all parts (input files), and "none" does not."""
_MOST_MASKS = "max_predictions_per_seq"
_LONGEST_SPAN = "longest_span"


def choose_settings(
    recipe_name: str | None,
    phase: int | None,
    changes: dict[str, Any],
    phase_changes: Mapping[int, dict[str, Any]] | None = None,
) -> tuple[Recipe | None, dict[str, ExampleSettings]]:
    """Return the recipe that the user chose, and the settings of each dataset, by output sub-directory.

    If the user chooses a dialect and no recipe, the recipe with the dialect's name is used. If the user
    chooses a sequence length for a recipe with two phases, the result is a single dataset in the output
    directory itself. An objective that belongs to no recipe has its default settings, and the recipe is then
    None.

    recipe_name: name of the recipe. None if the user did not choose one.
    phase: number of the phase. None if the user did not choose one.
    changes: settings that override the recipe's settings, by name.
    phase_changes: for each phase number, settings that override the recipe's settings in this phase only.
    """
    recipe = find_recipe(recipe_name or changes.get("dialect") or "mlperf")
    objective = changes.get("objective", recipe.objective)
    if objective != recipe.objective:
        check_without_recipe(objective, recipe_name, phase)
        require(
            not phase_changes, f"the objective {objective} has no recipe, so no settings of phase1 or phase2"
        )
        return None, {"": _make_settings(objective, changes)}
    selected = recipe.select(phase)
    require(
        not phase_changes or len(recipe.phases) > 1,
        f"recipe {recipe.name} has one phase, so no settings of phase1 or phase2",
    )
    # recipe.varied names the settings in which the phases differ, such as the sequence length and the number
    # of predictions. A user who sets all of them wants a single dataset with these values. If only some of
    # them are set, it is not clear which phase the user means.
    shape = recipe.varied & set(changes)
    if len(selected) > 1 and shape:
        if shape != recipe.varied:
            raise SettingsError(
                f"recipe {recipe.name} has two phases: give --phase to change one of them, or both "
                "--max-seq-length and --max-predictions-per-seq for one data set of that length"
            )
        selected = {"": recipe.phases[0]}
        phase_changes = None
    # Settings have three sources. The recipe's settings for the phase are overridden by the user's settings
    # for all phases, which are overridden by the user's settings for this phase.
    numbers = range(1, 3) if phase is None else [phase]
    own_changes = [(phase_changes or {}).get(number, {}) for number in numbers]
    return recipe, {
        place: _make_settings(objective, {**changes, **more}, own)
        for (place, own), more in zip(selected.items(), own_changes, strict=False)
    }


def check_without_recipe(objective: str, recipe: str | None, phase: int | None) -> None:
    """Raise SettingsError if the user chose a recipe or phase for an objective that belongs to no recipe."""
    find_objective(objective)
    for flag, value in (("--recipe", recipe), ("--phase", phase)):
        if value is not None:
            raise SettingsError(
                f"{flag} {value} goes with the objective of the recipe; with --objective {objective} leave "
                "it out and give the settings themselves, which have defaults"
            )


def _make_settings(
    objective: str, given: Settings, of_recipe: Mapping[str, Any] = MappingProxyType({})
) -> ExampleSettings:
    """Return the example settings of one dataset.

    given: settings that the user chose, by name.
    of_recipe: the recipe's settings, which are used for settings that the user did not choose. Settings that
        neither has get the objective's defaults.
    """
    found, chosen = find_objective(objective), {"objective": objective, **of_recipe, **given}
    check_setting_names(found.settings_type, chosen)
    if _MOST_MASKS not in given:
        chosen |= _fit_most_masks(found.settings_type, chosen)
    if _LONGEST_SPAN not in given:
        chosen |= _fit_longest_span(found.settings_type, chosen)
    settings = found.settings_type(**convert_to_field_types(found.settings_type, chosen))
    for name in found.batch_type.sizes():
        size = settings.layout.size(name)
        require(1 <= size <= LONGEST_SEQUENCE, f"{name} is {size}, expected 1 to {LONGEST_SEQUENCE}")
    return settings


def _fit_most_masks(kind: type[ExampleSettings], chosen: Settings) -> Settings:
    """Return max_predictions_per_seq for a sequence length below the default number of masks.

    The default belongs to the recipe's own sequence length, such as 76 masks for 512 ids. An example cannot
    have more masks than ids, so a shorter example gets the number of masks that masked_lm_prob gives for
    ``max_seq_length`` ids. The result is empty if the default fits.

    kind: the settings class of the objective.
    chosen: the settings of the user and of the recipe, by name.
    """
    defaults = {item.name: item.default for item in fields(kind)}
    if not {_MOST_MASKS, "masked_lm_prob"} <= set(defaults):
        return {}
    values = {**defaults, **chosen}
    length, share, default = values["max_seq_length"], values["masked_lm_prob"], values[_MOST_MASKS]
    # A value of a wrong type is left to the check of the settings, which names it.
    if type(length) is not int or type(share) not in (int, float) or not 0 <= share <= 1 or default <= length:
        return {}
    masks = max(1, round(length * share))
    # With permutation, half of the number is for masked words and half for shuffled words.
    return {_MOST_MASKS: min(length, 2 * masks if values.get("permutation") is True else masks)}


def _fit_longest_span(kind: type[ExampleSettings], chosen: Settings) -> Settings:
    """Return longest_span for a shortest_span above its default, or a sequence length below it.

    The result is empty if the default fits, or if the objective has no spans.
    kind, chosen: as for ``_fit_most_masks``.
    """
    defaults = {item.name: item.default for item in fields(kind)}
    if not {_LONGEST_SPAN, "shortest_span"} <= set(defaults):
        return {}
    values = {**defaults, **chosen}
    default, shortest, length = (values[name] for name in (_LONGEST_SPAN, "shortest_span", "max_seq_length"))
    # A value of a wrong type is left to the check of the settings, which names it.
    if type(shortest) is not int or type(length) is not int or shortest <= default <= length:
        return {}
    return {_LONGEST_SPAN: min(max(default, shortest), length)}


def check_shuffle(shuffle: str, num_shards: int | None) -> None:
    """Raise SettingsError if the shuffle's name is unknown, or if it does not allow this number of shards."""
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
    """Return the datasets to create: one for each phase of the recipe, with its directory and settings.

    num_shards: number of shards of a global shuffle. None means one shard per text part.
    """
    if not output:
        raise SettingsError("the output directory's name is empty")
    names = tuple(sorted(name_parts(parts).values()))
    numbered = len(settings) > 1
    vocabulary, targets = vocabulary_of(tokenizer), []
    record = None if isinstance(tokenizer, VocabularyFile) else tokenizer.record(vocabulary)
    for number, (place, given) in enumerate(settings.items(), 1):
        chosen = _fit_settings(given, vocabulary)
        if chosen.files_of_run and num_shards is not None:
            raise SettingsError("--as-original deals the examples to files of its own; leave out --shuffle")
        plan = DatasetPlan(
            recipe=recipe.name if recipe else None,
            phase=number if numbered else phase if recipe and len(recipe.phases) > 1 else None,
            settings=make_dataset_settings(chosen, vocabulary, num_shards, record),
            inputs=names,
        )
        directory = storage.join(output, place) if place else output
        dataset = Dataset(directory, plan, within=output if place else None)
        targets.append(Target(dataset=dataset, settings=chosen))
    return tuple(targets)


def _fit_settings(settings: ExampleSettings, vocabulary: Vocabulary) -> ExampleSettings:
    """Return the settings, changed so that word starts are stored if the examples need them.

    Raises SettingsError if the file format cannot hold the examples.
    """
    container, kind = find_container(settings.format), find_objective(settings.objective).batch_type
    container.check_examples(kind, settings.objective, has_masks=getattr(settings, "masks", False))
    return _store_word_starts(settings, vocabulary) if container.holds_word_starts else settings


def _store_word_starts(settings: ExampleSettings, vocabulary: Vocabulary) -> ExampleSettings:
    """Return the settings with the variant of the objective that also stores word starts, if they are needed.

    Word starts are needed by unmasked examples whose tokens do not show where a word starts, because the
    trainer needs them for whole-word masking.
    """
    objective, told = find_objective(settings.objective), vocabulary.continues_word is not None
    if WORD_STARTS in objective.unlearned and told:
        raise SettingsError(
            f"objective {objective.name}: the ids of {vocabulary.name} tell where words start; "
            f"expected {objective.name.removesuffix('_word_starts')}"
        )
    if objective.of_words and not told and not getattr(settings, "masks", True):
        return settings.with_changes(objective=objective.of_words)
    return settings


def list_plan_warnings(tokenizer: TokenizerFile) -> list[str]:
    """Return the warnings about the tokeniser, which are known before any text is read.

    They are about a vocabulary that differs from the published file of its name or does not suit the letter
    case, and about keys of a model's tokenizer_config.json that are ignored.
    """
    directory = tokenizer.path if storage.is_directory(tokenizer.path) else storage.get_parent(tokenizer.path)
    unread = warn_of_unread_keys(directory or ".")
    if not isinstance(tokenizer, VocabularyFile):
        return unread
    vocabulary = vocabulary_of(tokenizer)
    named = warn_about_local_name(tokenizer.path, vocabulary.md5)
    return [*unread, *named, *warn_of_casing(vocabulary, tokenizer.lower_case)]
