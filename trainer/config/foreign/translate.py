"""Translation of other trainers' keys and flags to keys of this one.

A name with another meaning is in the ``translations`` of a program's table, which have one of two forms:

- ``sets``: keys and values that hold where the given value is not false, 0 or empty.
- ``key``: the key that gets the value, which the other words change first: ``values`` (``flag_values`` on the
  command line) replaces it, ``divided_by`` and ``times`` name another key to divide or multiply by, and
  ``power_of`` is the base that it is the exponent of. ``with``: further keys that hold then; ``also``: those
  that hold for some values.

Either has no effect beside one of the names in ``unless``, or where the value is not more than ``above``.
A name with ``train_batch_size`` says whose batch that of the same command line is.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from bertdata.config.value_check import check_names, check_values, types_of
from bertdata.errors import SettingsError
from trainer.config.foreign.tables import ignored_names, other_names, translations
from trainer.config.schema import DEVICE_OPTIONS, device_option_properties, phase_names, properties

# With any of these train_batch_size has MLPerf's meaning: all workers together, one micro-step.
_MLPERF_ONLY = {"input_file", "bert_config_file", "num_train_steps", "num_warmup_steps", "steps_per_update"}


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may contain."""
    own = {name: item for name, item in properties().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in phase_names().items()}
    others = {name: own[key] for name, key in other_names().items()}
    return {**own, **others, **device_option_properties(), **ignored_names(), **translations()}


def translate(given: dict[str, Any], where: str = "", below: dict[str, Any] | None = None) -> dict[str, Any]:
    """The values by the trainer's own keys and device options; SettingsError for a wrong name or value.

    below: for a command line, the values of the file that it overrides, by the file's names.
    """
    check_names(given, known_names(), where)
    given = {name: _whole(name, value) for name, value in given.items()}
    check_values(given, known_names(), where)
    found: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name in given:
        for key, value in _meaning(name, given, below, where).items():
            if found.setdefault(key, value) != value:
                both = f"{source[key]} and {name} contradict each other"
                raise SettingsError(f"{where}{both}: both set {key}")
            source[key] = name
    check_values(found, properties(), where)
    return found


def _whole(name: str, value: Any) -> Any:
    """A whole float as an integer where the key takes one: JSON has one type for both."""
    whole = isinstance(value, float) and value.is_integer() and "integer" in types_of(known_names()[name])
    return int(value) if whole else value


def _meaning(name: str, given: dict[str, Any], below: dict[str, Any] | None, where: str) -> dict[str, Any]:
    """The keys that the name sets, with their values."""
    value = given[name]
    rule = translations().get(name)
    layers = (given, below or {})
    if rule is None:
        return {other_names().get(name, name): value}
    beside = any(layer.get(other) for other in rule.get("unless", ()) for layer in layers)
    if beside or ("above" in rule and value <= rule["above"]):
        return {}
    if name == "train_batch_size":
        return _train_batch_size(value, layers, where)
    if "key" not in rule:
        return dict(rule["sets"]) if value else {}
    values = rule["flag_values"] if below is not None and "flag_values" in rule else rule.get("values", {})
    also = rule.get("with", {}) | rule.get("also", {}).get(str(value).lower(), {})
    value = values.get(str(value).lower(), value)
    if "divided_by" in rule:
        value = _divide(name, value, [rule["divided_by"]], layers, where)
    if "times" in rule:
        value *= _find([rule["times"]], layers, 8)
    if "power_of" in rule:
        value = float(rule["power_of"]) ** value
    return {rule["key"]: value, **also}


def _train_batch_size(value: int, layers: Sequence[dict[str, Any]], where: str) -> dict[str, Any]:
    of_all = any(_MLPERF_ONLY & set(layer) for layer in layers)
    if of_all and not any(layer.get(name) for name in _names_of_one_worker() for layer in layers):
        count = _find(["steps_per_update"], layers)
        return {"batch_size": None, "accumulation": count, "global_batch_size": value * count}
    names = [
        "gradient_accumulation_steps",
        "accumulation",
        *(name for name, key in other_names().items() if key == "accumulation"),
    ]
    size = _divide("train_batch_size", value, names, layers, where)
    return {"batch_size": size, "accumulation": _find(names, layers), "global_batch_size": None}


def _names_of_one_worker() -> list[str]:
    """The names beside which train_batch_size is that of one worker."""
    every = ignored_names() | translations()
    return [name for name, item in every.items() if item.get("train_batch_size") == "of one worker"]


def _divide(name: str, value: int, by: Sequence[str], layers: Sequence[dict[str, Any]], where: str) -> int:
    count = _find(by, layers)
    if value % count:
        raise SettingsError(f"{where}{name} is {value}, expected a multiple of {by[0]} ({count})")
    return value // count


def _find(names: Sequence[str], layers: Sequence[dict[str, Any]], default: int = 1) -> int:
    """The value of the first name found in the upper layer, else in the lower one."""
    return next((int(layer[name]) for layer in layers for name in names if layer.get(name)), default)
