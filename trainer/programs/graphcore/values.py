"""Values as Graphcore's programs read them, of flags and of --config.

That is a JSON file whose values stand between the program's defaults and its flags.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.config.value_check import check_names, check_values, read_object
from bertdata.errors import UsageError
from bertdata.io import storage

_OWN_COPIES = Path(__file__).parent / "configs"


_NUMBER = {"type": ["number", "null", "array"], "items": {"type": "number"}}
_FILE_VALUES: dict[str, dict[str, Any]] = {
    "precision": {"type": ["number", "string"]},  # the program compares it, and takes a text for 16
    "hidden_act": {"type": ["string", "null"]},  # its flag takes a number in the program
    "weight_decay": {"type": "number"},
    "decay_steps": {"type": ["integer", "null"]},
    "decay_rate": {"type": ["number", "null"]},
    "lr_schedule_by_step": {
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[0-9]{1,18}$"},
        "additionalProperties": {"type": "number"},
    },
}
"""The schema of a file's values that are computed with."""


def layered(given: Given, source: str, used: Collection[str] = (), idle: Collection[str] = ()) -> Given:
    """Return the values, the file's between defaults and flags. Warn of what has no effect.

    Our copy stands for a published file, configs/NAME.json, that is not there. source: repository and commit
    of the published files. used, idle: the keys of the file that are no flags,
    those with a meaning, which are None where the file lacks them, and those without any. SettingsError names
    the nearest key for an unknown one.
    """
    path = given["config"]
    found: dict[str, Any] = {}
    if path is not None:
        is_published = storage.base_name(storage.parent(path)) == _OWN_COPIES.name
        copy = _OWN_COPIES / storage.base_name(path)
        if is_published and copy.is_file() and not storage.exists(path):
            given.warn(f"{path} is not there: taking the values of Graphcore's published file ({source})")
            found = read_object(str(copy))
        else:
            found = read_object(path)
    flags = {flag.name: flag for flag in given.table}
    check_names(found, {*flags, *used, *idle}, f"{path}: ")
    numbers = {name: _NUMBER for name, flag in flags.items() if flag.kind in (int, float)}
    check_values(found, {**numbers, **_FILE_VALUES}, f"{path}: ")
    without = sorted(name for name in found if name in idle or (name in flags and flags[name].idle))
    if without:
        given.warn(f"{path}: without effect here: {', '.join(without)}")
    values = dict.fromkeys(used) | given.values
    values |= {name: value for name, value in found.items() if name not in given and name not in idle}
    return replace(given, values=values)


def warmup_of(value: Any, per_step: int) -> int | float:
    """Return the warm-up in updates, or as a share of them. UsageError, in the program's words, for neither.

    per_step: updates of what the program calls a step.
    """
    if not isinstance(value, int | float) or (not 0 <= value < 1 and int(value) != value) or value < 0:
        wanted = "Warmup can be either an integer or a float between 0 and 1"
        raise UsageError(f"{wanted}. The value {value} is not acceptable")
    return int(value) * per_step if int(value) == value else float(value)


def capped(rate: float, warmup: int | float, updates: int) -> tuple[float, int | float]:
    """Return (learning rate, warm-up) with the program's rates for a run that is shorter than the warm-up.

    The program goes up the same slope and stops; here a warm-up must end within the run, so it ends with it,
    at the height of that place. A single update, whose own rate would be 0, has a small one.
    """
    if not isinstance(warmup, int) or warmup < updates:
        return rate, warmup
    shorter = updates - 1
    return max(1e-7, rate * shorter / warmup), shorter


def usual(opts: Given, each: int) -> dict[str, Any]:
    """Return the keys of the intervals, in updates. each: updates of what the program calls a step."""
    if opts["seed"] is None:
        opts.warn("no seed is given: the program draws one, here it is 42")
    return {
        "checkpoint_every": opts["steps_per_ckpts"] * each,
        "log_every": opts["steps_per_logs"] * each,
        **({"wandb_project": "tf-bert"} if opts["wandb"] else {}),
    }


def without_moments(opts: Given, name: str) -> dict[str, Any]:
    """Return the keys of another optimiser than LAMB and AdamW. UsageError for one that the programs lack."""
    if name not in ("momentum", "sgd"):
        raise UsageError(f"Optimizer {name} not recognised")
    momentum = {"momentum": opts["momentum"]} if name == "momentum" else {}
    return {"optimiser": name, "clipping": "none", **momentum}
