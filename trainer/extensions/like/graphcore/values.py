"""Values as Graphcore's programs read them, of flags and of --config.

That is a JSON file whose values stand between the program's defaults and its flags.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.config.value_check import check_names, read_object
from bertdata.errors import UsageError
from bertdata.io import storage

NORM_EPSILON = 1e-3
"""The number that the programs' layer norms add to the variance, whatever the configuration says."""

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


def yes_or_no(text: str) -> bool:
    """The value of a flag that takes the words for true and false; ValueError for another word."""
    word = text.lower()
    if word in ("true", "t", "1", "yes", "y"):
        return True
    if word in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError(text)


def warmup_of(value: Any, per_step: int) -> int | float:
    """The warm-up in updates, or as a share of them; UsageError, in the program's words, for neither.

    per_step: updates of what the program calls a step.
    """
    if not isinstance(value, int | float) or (not 0 <= value < 1 and int(value) != value) or value < 0:
        wanted = "Warmup can be either an integer or a float between 0 and 1"
        raise UsageError(f"{wanted}. The value {value} is not acceptable")
    return int(value) * per_step if int(value) == value else float(value)


def capped(rate: float, warmup: int | float, updates: int, least: float) -> tuple[float, int | float]:
    """(learning rate, warm-up) that give in a run shorter than the warm-up the rates that the program has.

    The program goes up the same slope and stops; here a warm-up must end within the run, so it ends with it,
    at the height of that place. least: the rate of a single update, whose own would be 0.
    """
    if not isinstance(warmup, int) or warmup < updates:
        return rate, warmup
    shorter = updates - 1
    return max(least, rate * shorter / warmup), shorter


def one_or_each(value: Any) -> Any:
    """A list of one value as that value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def said_no(arguments: Sequence[str], names: Sequence[str]) -> list[str]:
    """Warnings for flags read by ``bool`` on the command line that are given a word for false."""
    words = " ".join(arguments).replace("=", " ").split(" ")
    return [
        f"{flag} {value}: the program takes any word as true"
        for flag, value in pairwise(words)
        if flag.removeprefix("--") in names and value.lower() in ("false", "0", "no", "none")
    ]
