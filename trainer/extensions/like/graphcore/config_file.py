"""Graphcore's --config: a JSON file whose values stand between the program's defaults and its flags."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.config.value_check import check_names, read_object
from bertdata.io import storage

_OWN_COPIES = Path(__file__).parent / "configs"
_FOLDER = "configs"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileKeys:
    """The keys of a program's files that are no flags: those with a meaning, and those without any."""

    used: Collection[str] = ()
    idle: Collection[str] = ()


def layered(given: Given, table: Sequence[Flag], keys: FileKeys, source: str) -> Given:
    """The command line's values with the file's between defaults and flags, and with warnings about the file.

    A key of the file that is no flag has its value too, None where the file lacks it. SettingsError names the
    nearest key for an unknown one. source: repository and commit of the published files.
    """
    path, warnings = given["config"], list(given.warnings)
    found = {} if path is None else _read(path, source, warnings)
    flags = {flag.name: flag for flag in table}
    check_names(found, {*flags, *keys.used, *keys.idle}, f"{path}: ")
    idle = sorted(name for name in found if name in keys.idle or (name in flags and flags[name].idle))
    if idle:
        warnings.append(f"{path}: without effect here: {', '.join(idle)}")
    values = dict.fromkeys(keys.used) | given.values
    values |= {name: value for name, value in found.items() if name not in given and name not in keys.idle}
    return replace(given, values=values, warnings=warnings)


def own_copies() -> Mapping[str, str]:
    """The paths of our copies of Graphcore's published files, by name."""
    return {path.name: str(path) for path in sorted(_OWN_COPIES.glob("*.json"))}


def _read(path: str, source: str, warnings: list[str]) -> dict[str, Any]:
    """The file's keys; where configs/NAME.json is not there, those of our copy of the published one."""
    is_published = storage.base_name(storage.parent(path)) == _FOLDER
    copy = own_copies().get(storage.base_name(path))
    if is_published and copy is not None and not storage.exists(path):
        warnings.append(f"{path} is not there: taking the values of Graphcore's published file ({source})")
        found: dict[str, Any] = json.loads(Path(copy).read_text(encoding="utf-8"))
        return found
    return read_object(path)
