"""The commands that make data again: articles, parts, vocabularies and datasets.

Each function takes a step and the places of its files, and returns the words of a command line. A setting
that has its default, or the value of the step's recipe, gets no flag, so that the commands read like those
that a user types.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bertdata.config.held_out_names import find_held_out, is_companion_list
from bertdata.config.recipes import RECIPES, Recipe
from bertdata.config.settings import ExampleSettings
from bertdata.errors import SettingsError
from bertdata.examples.objectives import OBJECTIVES, find_objective, find_plain_objective_name
from bertdata.lineages.commands.command import (
    Places,
    expect_input,
    find_input,
    make_flag,
    make_flags,
    make_option,
)
from bertdata.lineages.step import Input, Step
from bertdata.sources.kinds import ESCAPED_ARTICLES, is_articles_kind
from bertdata.sources.settings import RecordSettings
from bertdata.text.input_kinds import TEXT
from bertdata.text.languages import ENGLISH
from bertdata.text.manifest import RECORDS
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.settings import VERSIONS, ExtractSettings

_SKIPPED_RECORDS = ("malformed", "empty", "too_long", "other_language")
"""Counts of records that are left out only with --skip-bad-records, or because of their language."""

_DERIVED = ("file", "roles", "between", "padding_id", "dealt_files", "pair_separators")
"""Settings in a dataset's manifest that follow from the tokeniser or from other settings."""


def make_extract_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that extracts the articles of a dump again."""
    settings, usual = step.settings, ExtractSettings()
    if settings["max_page_bytes"] != usual.max_page_bytes:
        raise SettingsError(
            f"bertdata extract, record {step.record}: max_page_bytes is {settings['max_page_bytes']}, "
            f"expected {usual.max_page_bytes}, since no flag sets it"
        )
    version = settings["extractor"]["version"]
    extractor = next((name for name, known in VERSIONS.items() if known == version), None)
    if extractor is None:
        raise SettingsError(
            f"bertdata extract, record {step.record}: the extractor is of version {version}, expected one of "
            f"{', '.join(VERSIONS.values())}"
        )
    [dump] = places.list_files(expect_input(step, "dump"))
    words = ["bertdata", "extract", dump, "--output", output, "--extractor", extractor]
    if settings["date"] is not None:
        words += make_option("--date", settings["date"])
    words.append("--templates" if settings["templates"] else "--no-templates")
    for page in settings.get("skip_pages", ()):
        words += make_option("--skip-page", page)
    return words


def make_segment_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that makes parts again."""
    settings = dict(step.settings)
    kinds = settings["input_kinds"]
    articles, text = find_input(step, "articles"), find_input(step, "text")
    words = ["bertdata", "segment"]
    books: list[str] = []
    if articles is not None:
        words += _list_article_paths(articles, places)
    if text is not None and articles is not None and settings["recipe"] != RECORDS:
        books = ["--books", *places.list_files(text)]
    elif text is not None:
        words += places.list_files(text)
    words += ["--output", output, *books]
    found = {kinds[name] for name in kinds}
    if settings["recipe"] == RECORDS:
        words += _make_record_flags(step, settings)
        if len(found) == 1 and not any(map(is_articles_kind, found)):
            words += ["--input-kind", *found]
    else:
        words += make_flags(_list_article_settings(settings), _list_defaults(SegmentSettings))
        if found == {TEXT}:
            words += ["--input-kind", TEXT]
    words += _make_language_flags(settings)
    if articles is not None and articles.made_by is None:
        words += ["--escaped-articles", "yes" if ESCAPED_ARTICLES in found else "no"]
    for role, flag in (("texts to exclude", "--exclude"), ("abbreviations", "--abbreviations")):
        for path in () if (one := find_input(step, role)) is None else places.list_files(one):
            words += [flag, path]
    return words


def _list_article_paths(articles: Input, places: Places) -> list[str]:
    """Return the directory of rebuilt articles, or the files of articles that are sources."""
    if articles.made_by is not None and len(articles.files) == len(articles.made_by.outputs):
        return [places.get_output(articles.made_by)]
    return places.list_files(articles)


def _list_article_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the recipes mlperf and nvidia that have flags."""
    names = ("recipe", "eval_articles", "block_size", "training_shards", "test_shards", "test_fraction")
    found = {name: settings[name] for name in names if name in settings}
    usual = SegmentSettings(language=settings.get("language", ENGLISH)).prefix
    if settings.get("prefix", usual) != usual:
        found["prefix"] = settings["prefix"]
    return found


def _make_record_flags(step: Step, settings: Mapping[str, Any]) -> list[str]:
    """Return the flags of parts that were made from records."""
    chosen = (*fields(RecordSettings), *fields(SelectionSettings))
    names = ["part_size", "sentences", *(item.name for item in chosen if item.name != "exclude")]
    if not settings.get("exclude"):
        names.remove("exclude_ngram")
    values = {name: settings[name] for name in names if name in settings}
    values["skip_bad_records"] = any(step.facts.get(name) for name in _SKIPPED_RECORDS)
    defaults = {**_list_defaults(PartSettings), **_list_defaults(RecordSettings)}
    return make_flags(values, {**defaults, **_list_defaults(SelectionSettings)})


def _make_language_flags(settings: Mapping[str, Any]) -> list[str]:
    """Return the flags of the language and of the sentence splitter."""
    words = [] if settings.get("language") is None else make_option("--language", settings["language"])
    punkt = settings["punkt"]
    if punkt is not None and punkt["variant"] != _list_defaults(SegmentSettings)["punkt"]:
        words += make_option("--punkt", punkt["variant"])
    return words


def make_vocabulary_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that trains a vocabulary again."""
    settings = step.settings
    texts = [path for one in step.inputs for path in places.list_files(one)]
    words = ["bertdata", "train-vocab", *texts, "--output", output, "--size", str(settings["size"])]
    if settings["kind"] != "wordpiece":
        words += ["--kind", settings["kind"]]
    if settings["special"]:
        words += [word for token in settings["special"] for word in make_option("--special", token)]
    if settings["lower_case"] != (settings["kind"] == "wordpiece"):
        words.append("--lower-case" if settings["lower_case"] else "--no-lower-case")
    words += make_flags({"keep_accents": settings.get("keep_accents")})
    return words + make_flags(settings.get("records", {}))


def make_create_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that makes a dataset's shards again."""
    settings = step.settings
    words = ["bertdata", "create", *_list_part_paths(step, places), "--output", output]
    tokenizer = settings["tokenizer"]
    [vocabulary] = places.list_files(expect_input(step, "vocabulary"))
    if "file" in tokenizer:
        words += ["--tokenizer", vocabulary]
        for role, token in tokenizer["roles"].items():
            words += make_option("--role", f"{role}={token}")
    else:
        words += ["--vocab", vocabulary]
    recipe = None if settings["recipe"] is None else RECIPES.get(settings["recipe"])
    if settings["recipe"] is not None:
        words += make_option("--recipe", settings["recipe"])
    if settings["phase"] is not None:
        words += ["--phase", str(settings["phase"])]
    words += _make_example_flags(step, recipe)
    container = settings["container"]
    if container.get("shuffle"):
        words += ["--shuffle", container["shuffle"], "--num-shards", str(container["num_shards"])]
    if step.facts.get("inputs left out"):
        words.append("--skip-bad-inputs")
    return words


def _list_part_paths(step: Step, places: Places) -> list[str]:
    """Return the directory of rebuilt parts if all parts to train on were read, otherwise the files."""
    parts = expect_input(step, "parts")
    if parts.made_by is not None:
        written = [file.name for file in parts.made_by.outputs]
        held_out = {*find_held_out(written), *filter(is_companion_list, written)}
        if sorted(file.name for file in parts.files) == sorted(set(written) - held_out):
            return [places.get_output(parts.made_by)]
    return places.list_files(parts)


def _make_example_flags(step: Step, recipe: Recipe | None) -> list[str]:
    """Return the flags of a dataset's settings that differ from its recipe, or from the defaults.

    recipe: the recipe that the dataset was made with, or None.
    """
    records = step.settings
    name = find_plain_objective_name(records["objective"]["name"])
    kind = find_objective(name).settings_type
    merged = {**records["tokenizer"], **records["objective"], **records["container"]}
    values = {item.name: merged[item.name] for item in fields(kind) if item.name in merged}
    usual = _list_defaults(kind) | {"objective": "bert" if recipe is None else recipe.objective}
    # A recipe with two phases and no number of a phase: the user has given all settings in which they differ.
    varied: set[str] = set()
    if recipe is not None:
        usual |= recipe.phases[(step.settings["phase"] or 1) - 1]
        varied = recipe.varied if step.settings["phase"] is None and len(recipe.phases) > 1 else varied
    values["objective"] = name
    if "file" in records["tokenizer"]:  # a tokenizer.json says itself how text is read
        values = {name: value for name, value in values.items() if name not in _TOKENIZER_SETTINGS}
    words: list[str] = []
    defaults = _list_defaults(kind)
    for setting, value in values.items():
        if value != usual.get(setting) or setting in varied:
            words += _make_setting_flag(step, setting, value, default=defaults.get(setting))
    return words


_TOKENIZER_SETTINGS = tuple(
    item.name for item in fields(ExampleSettings) if item.metadata.get("record") == "tokenizer"
)
"""Settings of a WordPiece vocabulary, which do not go with a tokenizer.json."""


def _make_setting_flag(step: Step, name: str, value: Any, *, default: Any) -> list[str]:
    """Return the flag of a setting of examples.

    default: the default that the setting's class declares. It decides whether a switch can be negated.
    """
    if isinstance(value, bool):
        if value:
            return [make_flag(name)]
        if default is True:
            return [make_flag(f"no_{name}")]
        raise SettingsError(
            f"bertdata create, record {step.record}: {name} is false, which no flag says; its recipe "
            f"{step.settings['recipe']} has it true"
        )
    return make_option(make_flag(name), value)


def _list_defaults(kind: type[Any]) -> dict[str, Any]:
    """Return the default of each setting of a settings class, by name."""
    return {item.name: item.default for item in fields(kind)}


def make_pack_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that packs a dataset again."""
    container = step.settings["container"]
    words = ["bertdata", "pack", _find_dataset(step, places), "--output", output]
    words += ["--layout", container["packing"], "--format", container["format"]]
    words += ["--max-sequences-per-pack", str(container["sequences_per_row"])]
    words += ["--method", container["packing_method"], "--seed", str(container["packing_seed"])]
    if container["packing"] in ("flat", "nvidia"):  # the others have a fixed number of rows in a shard
        words += ["--num-shards", str(container["num_shards"])]
    return words + _make_objective_flag(step)


def make_convert_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that converts a dataset again."""
    container = step.settings["container"]
    to = container["format"]
    words = ["bertdata", "convert", _find_dataset(step, places), output, "--to", to]
    if to not in ("mds", "fairseq") and "num_shards" in container:
        words += ["--num-shards", str(container["num_shards"])]
    words += make_flags({name: container.get(name) for name in ("shuffled", "size_limit", "compression")})
    if to == "lddl":
        words += make_flags({"bin_size": container.get("bin_size")}, {"bin_size": 0})
    if container.get("hashes"):
        words += make_option("--hashes", container["hashes"])
    words += make_flags({"len": container.get("len")})
    return words + _make_objective_flag(step)


def _find_dataset(step: Step, places: Places) -> str:
    """Return the directory of the rebuilt dataset that a step packs or converts."""
    made_by = expect_input(step, "examples").made_by
    if made_by is None:
        raise SettingsError(f"{step.program}, record {step.record}: the dataset that it read is not known")
    return places.get_output(made_by)


def _make_objective_flag(step: Step) -> list[str]:
    """Return the flag that imports a user's own objective, which no file may do."""
    name = step.settings["objective"].get("name", "bert")
    return [] if name in OBJECTIVES else make_option("--objective", name)


def make_binarise_words(step: Step, places: Places, output: str) -> list[str]:
    """Return the command line that converts text to fairseq's binary format again."""
    texts = places.list_files(expect_input(step, "text"))
    [tokenizer] = places.list_files(expect_input(step, "vocabulary"))
    if len(texts) != 1:
        raise SettingsError(
            f"bertdata convert, record {step.record}: was made of {len(texts)} files, expected one, since no "
            "more can be named"
        )
    return ["bertdata", "convert", texts[0], output, "--to", "fairseq", "--tokenizer", tokenizer]
