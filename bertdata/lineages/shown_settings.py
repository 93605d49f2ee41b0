"""The settings of a step as text, without those that say nothing to a reader."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.lineages.step import FINETUNE, PRETRAIN, LineageFile, Step, compute_files_md5
from schemas import load_schema

_PLACES = (
    *("output_dir", "overwrite_output_dir", "resume", "resume_step", "resume_from", "resume_skips_damaged"),
    *(
        "steps_this_run",
        "keep_checkpoints",
        "keep_local_checkpoints",
        "checkpoint_every",
        "checkpoint_signal",
    ),
    *("save_plan", "profile", "cache_dir", "cache_size"),
)
"""Keys of the trainer's configuration that decide when and where something is written, but no weights."""
_SECTIONS_OF_LOGS = ("reports", "loggers")

_MD5 = re.compile("[0-9a-f]{32}")


def list_shown_settings(step: Step) -> dict[str, str]:
    """Return the settings of a step as text, by name, for people.

    Of a training run, they are the settings that are not the default and decide the weights. Of other steps,
    settings that are null are left out. Settings within a record, such as ``objective``, are shown under
    their own names.
    """
    is_run = step.name in (PRETRAIN, FINETUNE)
    found = dict(_list_run_settings(step.settings)) if is_run else dict(_flatten(step.settings))
    return {name: format_value(value) for name, value in found.items() if value is not None}


def list_changed_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a trainer's configuration that decide the weights and are not the default."""
    known = load_schema("trainer")["properties"]
    return {
        name: value
        for name, value in config.items()
        if name in known
        and name not in _PLACES
        and known[name].get("section") not in _SECTIONS_OF_LOGS
        and value != known[name].get("default")
    }


def _list_run_settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each setting of a training run that is worth showing."""
    model = settings.get("model", {})
    yield from list_changed_keys(
        {name: value for name, value in settings.items() if name not in model}
    ).items()
    for name, value in model.items():
        yield f"model.{name}", value


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each setting. Records within records are flattened, with a dotted name."""
    for name, value in settings.items():
        if name == "input_kinds":
            kinds = set(value.values())
            yield name, ", ".join(sorted(kinds))
        elif isinstance(value, Mapping) and _holds_md5s(value):
            files = tuple(LineageFile(name=file, md5=md5) for file, md5 in value.items())
            yield f"{prefix}{name}", f"{len(files)} files with md5s of md5 {compute_files_md5(files)}"
        elif isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _holds_md5s(values: Mapping[str, Any]) -> bool:
    """Return True if the values are the md5s of several files, by their names."""
    return len(values) > 1 and all(isinstance(one, str) and _MD5.fullmatch(one) for one in values.values())


def format_value(value: Any) -> str:
    """Return a setting's value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
