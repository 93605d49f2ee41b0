"""Section of the report about the settings that decide the bytes of a dataset, with explanations."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from bertdata.examples.masking.settings import MaskingSettings
from bertdata.reports.charts.values import DataTable, Value
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import compare_values, list_different_rows

_RECORDS = {"text": "text", "tokenizer": "tokeniser", "objective": "objective", "container": "container"}
_PUNKT_TABLES = "text.punkt.tables"
_WORDS = {
    "recipe.recipe": "named settings of a published program",
    "text.punkt.variant": "variant of the sentence splitter Punkt",
    _PUNKT_TABLES: "md5 of a table of Punkt",
    "text.recipe": "recipe of the parts",
    "text.language": "language of the text",
    "text.language_field": "field that held the language of each record",
    "text.sentences": "how sentences were found",
    "tokenizer.kind": "kind of tokeniser",
    "tokenizer.file": "file of the tokeniser",
    "tokenizer.roles": "special token with this role",
    "tokenizer.between": "text between two lines of a document",
    "tokenizer.vocabulary.md5": "md5 of the vocabulary",
    "tokenizer.vocabulary.tokens": "distinct tokens of the vocabulary",
    "objective.name": "what a model learns from an example",
    "container.format": "file format of the shards",
    "container.shuffle": "order of documents over the whole corpus",
    "container.num_shards": "shards of the global shuffle",
    "container.padding_id": "id in empty places",
    "container.layout": "arrangement of packed rows",
    "container.packing": "arrangement of packed rows",
    "container.sequences_per_row": "most examples in a packed row",
    "container.packing_method": "how the packed rows were planned",
    "container.packing_seed": "seed of the order of the packed rows",
    "container.packing_plan": "md5 of the plan of the packed rows",
}

_MOST_NAMED = 8
"""Most names of settings that differ in the sentence about them."""
_MASK_SETTINGS = frozenset(f"objective.{item.name}" for item in fields(MaskingSettings))
"""Full names of the settings about masks."""


def make_settings_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section with a row for each setting, or None if no dataset has a manifest."""
    found = [_collect_settings(numbers) for numbers in datasets]
    found = _fold_punkt_tables(found)
    names = list(dict.fromkeys(name for values in found for name in values))
    if not names:
        return None
    meanings = {name: meaning for numbers in datasets for name, meaning in _collect_meanings(numbers).items()}
    rows: list[tuple[Value, ...]] = []
    compared: list[str] = []
    for name in names:
        values = [values.get(name) for values in found]
        record, _, setting = name.partition(".")
        row: tuple[Value, ...] = (setting, _RECORDS.get(record, record), *values)
        if len(datasets) > 1:
            compared.append(compare_values(values))
            row = (*row, compared[-1])
        rows.append((*row, meanings.get(name, _find_meaning(name))))
    heads = ["value"] if len(datasets) == 1 else [*(numbers.name for numbers in datasets), "compared"]
    table = DataTable(
        "Settings",
        ("setting", "of", *heads, "meaning"),
        tuple(rows),
        wide=True,
        marked_rows=list_different_rows(compared),
    )
    return ReportSection("Settings", (table,), _describe_differences(rows, compared))


def _describe_differences(rows: Sequence[tuple[Value, ...]], compared: Sequence[str]) -> str:
    """Return a sentence that names the settings that differ. It is empty for a single dataset.

    compared: for each row, whether its values are the same.
    """
    if not compared:
        return ""
    different = [str(rows[number][0]) for number in list_different_rows(compared)]
    if not different:
        return "All settings are the same."
    told = f"{len(different)} of {len(rows)} settings differ"
    if len(different) > _MOST_NAMED:
        return f"{told}. They are marked in the table."
    return f"{told}: {', '.join(different)}."


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
    if found.get("objective.masks") == "no":
        # Such a dataset has no masks, so its settings about masks have no effect.
        found = {name: value for name, value in found.items() if name not in _MASK_SETTINGS}
    return found


def _fold_punkt_tables(found: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
    """Replace the md5s of the Punkt tables of several languages by one row with the number of languages.

    A corpus in several languages has four tables for each of up to 19 languages, which would fill the table
    of settings. The md5s stay if they differ between datasets, so that the difference can be seen.
    """
    tables = [
        {name: md5 for name, md5 in values.items() if name.startswith(f"{_PUNKT_TABLES}.") and "/" in name}
        for values in found
    ]
    if any(one != other for one in tables for other in tables if one and other):
        return [dict(values) for values in found]
    folded: list[dict[str, Value]] = []
    for values, own in zip(found, tables, strict=True):
        languages = {name.partition("/")[0] for name in own}
        plural = "s" * (len(languages) > 1)
        folded.append({name: value for name, value in values.items() if name not in own})
        if own:
            folded[-1][_PUNKT_TABLES] = f"{len(languages)} language{plural}, md5s in manifest.json"
    return folded


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
