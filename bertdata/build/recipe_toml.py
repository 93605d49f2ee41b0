"""A recipe as the TOML file that ``create --config`` and ``segment --config`` read."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from bertdata.config.recipes import Recipe
from bertdata.examples.objectives import find_objective
from bertdata.text.settings import NVIDIA_TEXT, SegmentSettings

_RECORDS = ("tokenizer", "objective", "container")
_VOCABULARY = '# vocab = "vocab.txt"  # or tokenizer = "tokenizer.json"; here or as a flag of create\n'
_SHUFFLE = '# none, or global: documents of all parts mixed, into num_shards shards\nshuffle = "none"\n'


def recipe_toml(recipe: Recipe) -> str:
    """The file, with every setting of the recipe and its help. What a phase has of its own comes last."""
    kind = find_objective(recipe.objective).settings_type
    first, *others = [kind(**phase) for phase in recipe.phases]
    text = SegmentSettings(recipe="nvidia" if recipe.name in NVIDIA_TEXT else "mlperf")
    shared = {
        item.name: getattr(first, item.name)
        for item in fields(kind)
        if all(getattr(other, item.name) == getattr(first, item.name) for other in others)
    }
    lines = [f"# {recipe.summary}\n", f'recipe = "{recipe.name}"\n', "\n[text]\n"]
    lines += _lines(SegmentSettings, text.as_json() | {"punkt": text.punkt, "language": text.language})
    for record in _RECORDS:
        lines.append(f"\n[{record}]\n")
        lines += [_VOCABULARY] if record == "tokenizer" else []
        lines += _lines(kind, shared, record)
        lines += [_SHUFFLE] if record == "container" else []
    for number, phase in enumerate([first, *others] if others else [], 1):
        own = {item.name: getattr(phase, item.name) for item in fields(kind) if item.name not in shared}
        for record in _RECORDS:
            if found := list(_lines(kind, own, record)):
                lines += [f"\n[phase{number}.{record}]\n", *found]
    return "".join(lines)


def _lines(kind: type[Any], values: Mapping[str, Any], record: str | None = None) -> Iterator[str]:
    """The settings that belong to the record, or all, each behind its help. None is not given."""
    for item in fields(kind):
        if values.get(item.name) is not None and record in (None, item.metadata["record"]):
            name = "name" if record and item.name == "objective" else item.name
            yield f"# {item.metadata['help']}\n{name} = {json.dumps(values[item.name])}\n"
