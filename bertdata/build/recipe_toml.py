"""Printing of a recipe (the settings of a published data set) as a TOML file.

The user can edit the file and pass it to ``create --config`` and ``segment --config``.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from bertdata.config.recipes import Recipe
from bertdata.examples.objectives import find_objective
from bertdata.text.part_settings import PartSettings
from bertdata.text.settings import NVIDIA_TEXT_RECIPES, SegmentSettings

_RECORDS = ("tokenizer", "objective", "container")
_VOCABULARY = '# vocab = "vocab.txt"  # or tokenizer = "tokenizer.json"; here or as a flag of create\n'
_EXAMPLES = {
    "abbreviations": "abbreviations.txt",
    "escaped_articles": "yes",
    "text_field": "text",
    "id_field": "id",
    "language_field": "language",
    "keep_languages": "de,en",
    "quoting": "none",
    "separator": ";",
    "exclude": ["evaluation.jsonl"],
    "dedup": "exact",
    "eval_share": "1%",
}
"""Values that the file shows as examples for settings whose default is empty, by setting."""
_SHUFFLE = '# none, or global: documents of all parts mixed, into num_shards shards\nshuffle = "none"\n'


def format_recipe(recipe: Recipe) -> str:
    """Return the text of a TOML file that lists every setting of the recipe, each below its help text.

    Settings in which the phases differ come last, in one table for each phase.
    """
    kind = find_objective(recipe.objective).settings_type
    first, *others = [kind(**phase) for phase in recipe.phases]
    shared = {
        item.name: getattr(first, item.name)
        for item in fields(kind)
        if all(getattr(other, item.name) == getattr(first, item.name) for other in others)
    }
    lines = [f"# {recipe.summary}\n", f'recipe = "{recipe.name}"\n', *_write_text_table(recipe)]
    for record in _RECORDS:
        lines.append(f"\n[{record}]\n")
        lines += [_VOCABULARY] if record == "tokenizer" else []
        named = {name for phase in recipe.phases for name in phase} if record == "tokenizer" else None
        lines += _write_settings(kind, shared, record, named)
        lines += [_SHUFFLE] if record == "container" else []
    for number, phase in enumerate([first, *others] if others else [], 1):
        own = {item.name: getattr(phase, item.name) for item in fields(kind) if item.name not in shared}
        for record in _RECORDS:
            if found := list(_write_settings(kind, own, record)):
                lines += [f"\n[phase{number}.{record}]\n", *found]
    return "".join(lines)


def _write_text_table(recipe: Recipe) -> Iterator[str]:
    """Yield the lines of the table [text].

    Settings that have a default, and settings that apply only to articles or to records, are written as
    comments.
    """
    is_nvidia = recipe.name in NVIDIA_TEXT_RECIPES
    text = SegmentSettings(recipe="nvidia" if is_nvidia else "mlperf")
    of_articles = text.as_json()
    yield "\n[text]\n"
    yield from _write_settings(SegmentSettings, {"punkt": text.punkt, "language": text.language})
    others = {name: _EXAMPLES[name] for name in ("abbreviations", "escaped_articles")}
    yield from _write_settings(SegmentSettings, others, named=())
    yield "\n# of articles and books alone\n"
    yield from _write_settings(SegmentSettings, of_articles, named=of_articles if is_nvidia else ())
    yield "\n# of files of records alone\n"
    parts = PartSettings()
    for settings in (parts, parts.records, parts.selection):
        kind = type(settings)
        values = {item.name: getattr(settings, item.name) for item in fields(kind)}
        shared = {"punkt", "language", "abbreviations", "escaped_articles", "records", "selection"}
        own = {name: value for name, value in values.items() if name not in shared}
        yield from _write_settings(
            kind, {name: _EXAMPLES.get(name, value) for name, value in own.items()}, named=()
        )


def _write_settings(
    kind: type[Any],
    values: Mapping[str, Any],
    record: str | None = None,
    named: Collection[str] | None = None,
) -> Iterator[str]:
    """Yield the lines for the settings of a class, each below its help text.

    Settings whose value is None are left out.

    kind: the settings class.
    values: value of each setting, by name.
    record: only settings that the manifest stores in the record (JSON object) of this name. None means all
        settings.
    named: names of the settings that are written as active lines. The others are written as comments. None
        means that all are active.
    """
    for item in fields(kind):
        if values.get(item.name) is not None and record in (None, item.metadata["record"]):
            name = "name" if record and item.name == "objective" else item.name
            mark = "" if named is None or item.name in named else "# "
            yield f"# {item.metadata['help']}\n{mark}{name} = {json.dumps(values[item.name])}\n"
