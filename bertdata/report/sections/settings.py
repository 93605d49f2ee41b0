"""Section of the report about the settings that decide the bytes of a dataset, with explanations."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from bertdata.report.charts.values import DataTable, Value
from bertdata.report.numbers import DatasetNumbers
from bertdata.report.page.page import ReportSection

_RECORDS = {"text": "text", "tokenizer": "tokeniser", "objective": "objective", "container": "container"}
_WORDS = {
    "recipe.recipe": "named settings of a published program",
    "text.punkt.variant": "variant of the sentence splitter Punkt",
    "text.punkt.tables": "md5 of a table of Punkt",
    "text.recipe": "recipe of the parts",
    "text.language": "language of the text",
    "text.language_field": "field that held the language of each record",
    "text.sentences": "how sentences were found",
    "tokenizer.kind": "kind of tokeniser",
    "tokenizer.vocabulary.md5": "md5 of the vocabulary",
    "tokenizer.vocabulary.tokens": "distinct tokens of the vocabulary",
    "objective.name": "what a model learns from an example",
    "container.format": "file format of the shards",
    "container.shuffle": "order of documents over the whole corpus",
    "container.num_shards": "shards of the global shuffle",
    "container.padding_id": "id in empty places",
    "container.layout": "arrangement of packed rows",
}


def make_settings_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section with a row for each setting, or None if no dataset has a manifest."""
    found = [_collect_settings(numbers) for numbers in datasets]
    names = list(dict.fromkeys(name for values in found for name in values))
    if not names:
        return None
    meanings = {name: meaning for numbers in datasets for name, meaning in _collect_meanings(numbers).items()}
    rows: list[tuple[Value, ...]] = []
    for name in names:
        values = [values.get(name) for values in found]
        record, _, setting = name.partition(".")
        row: tuple[Value, ...] = (setting, _RECORDS.get(record, record), *values)
        if len(datasets) > 1:
            row = (*row, "same" if len({str(value) for value in values}) == 1 else "differs")
        rows.append((*row, meanings.get(name, _find_meaning(name))))
    heads = ["value"] if len(datasets) == 1 else [*(numbers.name for numbers in datasets), "compared"]
    table = DataTable("Settings", ("setting", "of", *heads, "meaning"), tuple(rows), wide=True)
    return ReportSection("Settings", (table,))


def _find_meaning(name: str) -> str:
    """Return the explanation of a setting that does not belong to an objective.

    If there is none, return the explanation of the record (JSON object) that contains the setting.
    """
    return next((meaning for start, meaning in _WORDS.items() if f"{name}.".startswith(f"{start}.")), "")


def _collect_settings(numbers: DatasetNumbers) -> dict[str, Value]:
    """Return the settings of a dataset by their full names, such as "tokenizer.vocabulary.md5"."""
    if numbers.dataset.manifest is None:
        return {}
    plan = numbers.dataset.manifest.plan
    found: dict[str, Value] = {}
    if plan.recipe is not None:
        found["recipe.recipe"] = plan.recipe if plan.phase is None else f"{plan.recipe}, phase {plan.phase}"
    for record, values in plan.settings.as_json().items():
        found |= _flatten_record(record, values)
    return found


def _flatten_record(name: str, value: Any) -> dict[str, Value]:
    """Return the values in nested records by their full names. Settings that are not set are left out."""
    if isinstance(value, Mapping):
        return {
            inner: numbers
            for key in value
            for inner, numbers in _flatten_record(f"{name}.{key}", value[key]).items()
        }
    if value is None:
        return {}
    if isinstance(value, bool):
        return {name: "yes" if value else "no"}
    if isinstance(value, list):
        return {name: ", ".join(map(str, value))}
    return {name: str(value)}


def _collect_meanings(numbers: DatasetNumbers) -> dict[str, str]:
    """Return the help texts of an objective's settings, by the settings' full names."""
    if numbers.statistics is None:
        return {}
    helps = {item.name: item.metadata.get("help", "") for item in fields(numbers.objective.settings_type)}
    return {
        f"{record}.{name}": told
        for name, told in helps.items()
        for record in _RECORDS
        if isinstance(told, str)
    }
