"""The values of flags as Graphcore's programs read them, from the command line and from a JSON file.

The flag --config names the JSON file. The file's values override the defaults of Graphcore's program, and
flags override the file's values.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.config.value_check import check_names, check_values, read_object
from bertdata.errors import UsageError
from bertdata.io import storage

_OWN_COPIES = Path(__file__).parent / "configs"


_NUMBER = {"type": ["number", "null", "array"], "items": {"type": "number"}}
_GIVEN_NUMBER = {"type": ["number", "array"], "items": {"type": "number"}}
_FILE_VALUES: dict[str, dict[str, Any]] = {
    "precision": {"type": ["number", "string"]},  # for any text, the program uses 16 bits
    "hidden_act": {"type": ["string", "null"]},  # on the command line, the program expects a number here
    "weight_decay": {"type": "number"},
    "pipeline_depth": {"type": "integer"},
    "decay_steps": {"type": ["integer", "null"]},
    "decay_rate": {"type": ["number", "null"]},
    "lr_schedule_by_step": {
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[0-9]{1,18}$"},
        "additionalProperties": {"type": "number"},
    },
}
"""JSON Schema of those values in the JSON file with which something is computed."""


def merge_values(
    flags: ParsedCommandLine, source: str, used: Collection[str] = (), idle: Collection[str] = ()
) -> ParsedCommandLine:
    """Return the values of all flags, from defaults, JSON file and command line.

    Warns about keys in the JSON file that have no effect. If the file is one of Graphcore's published files
    (configs/NAME.json) and is missing, a copy in this package is used. Raises SettingsError for an unknown
    key, and suggests the nearest known key.
    source: repository and commit of the published files.
    used: keys that the program reads only from the file. Their value is None if the file lacks them.
    idle: keys that the published files have but the program ignores.
    """
    path = flags["config"]
    found: dict[str, Any] = {}
    if path is not None:
        is_published = storage.get_base_name(storage.get_parent(path)) == _OWN_COPIES.name
        copy = _OWN_COPIES / storage.get_base_name(path)
        if is_published and copy.is_file() and not storage.exists(path):
            flags.warn(f"{path} is not there: taking the values of Graphcore's published file ({source})")
            found = read_object(str(copy))
        else:
            found = read_object(path)
    known = {flag.name: flag for flag in flags.table}
    check_names(found, {*known, *used, *idle}, f"{path}: ")
    # JSON's null is the default of some numbers. With the others, the program would compute.
    numbers = {
        name: _NUMBER if flags.values.get(name) is None else _GIVEN_NUMBER
        for name, flag in known.items()
        if flag.kind in (int, float)
    }
    check_values(found, {**numbers, **_FILE_VALUES}, f"{path}: ")
    without = sorted(name for name in found if name in idle or (name in known and known[name].idle))
    if without:
        flags.warn(f"{path}: without effect here: {', '.join(without)}")
    values = dict.fromkeys(used) | flags.values
    values |= {name: value for name, value in found.items() if name not in flags and name not in idle}
    return replace(flags, values=values)


def read_warmup(value: Any, per_step: int) -> int | float:
    """Return the length of the learning rate's warm-up: a number of updates, or a share of all updates.

    value: value of the setting in Graphcore's program.
    per_step: number of updates in a step of the program.
    Raises UsageError, worded as in Graphcore's program, for a value that is neither a number of updates nor a
    share.
    """
    if not isinstance(value, int | float) or (not 0 <= value < 1 and int(value) != value) or value < 0:
        raise UsageError(
            f"Warmup can be either an integer or a float between 0 and 1. The value {value} is not acceptable"
        )
    return int(value) * per_step if int(value) == value else float(value)


def shorten_warmup(rate: float, warmup: int | float, updates: int) -> tuple[float, int | float]:
    """Return (learning rate, warm-up) for a run that may end before its warm-up does.

    In a run that ends within the warm-up, the learning rate of Graphcore's program just rises until the end.
    In this trainer the warm-up must end within the run. So the warm-up is shortened to the length of the run,
    and the learning rate is lowered to the value that the program reaches at the end. For a run of a single
    update that value would be 0, so a small one is used instead.
    rate: learning rate at the end of the full warm-up.
    warmup: length of the warm-up, as a number of updates or a share of them.
    updates: number of updates in the run.
    """
    if not isinstance(warmup, int) or warmup < updates:
        return rate, warmup
    shorter = updates - 1
    return max(1e-7, rate * shorter / warmup), shorter


def make_interval_keys(opts: ParsedCommandLine, each: int) -> dict[str, Any]:
    """Return the configuration keys for the number of updates between checkpoints and between rows of the
    log.

    each: number of updates in a step of the program.
    """
    if opts["seed"] is None:
        opts.warn("no seed is given: the program draws one, here it is 42")
    return {
        "checkpoint_every": opts["steps_per_ckpts"] * each,
        "log_every": opts["steps_per_logs"] * each,
        **({"wandb_project": "tf-bert"} if opts["wandb"] else {}),
    }


def make_momentum_keys(opts: ParsedCommandLine, name: str) -> dict[str, Any]:
    """Return the configuration keys for the optimisers momentum and sgd.

    name: name of the optimiser.
    Raises UsageError for an optimiser that Graphcore's programs do not have.
    """
    if name not in ("momentum", "sgd"):
        raise UsageError(f"Optimizer {name} not recognised")
    momentum = {"momentum": opts["momentum"]} if name == "momentum" else {}
    return {"optimiser": name, "clipping": "none", **momentum}
