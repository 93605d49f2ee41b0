"""Keys and flags of the trainers that this one replaces, as the keys that they stand for here.

Both kinds are declared in ``schemas/trainer.json``. A name that merely differs is among a key's
``aliases``. One that differs in meaning too is among the ``translations``: it sets what ``sets`` says
where its value is not false, 0 or empty, or else its ``key``, to the value changed as the other words say.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from bertdata.checking import check_names, check_values, types_of
from bertdata.errors import SettingsError
from schemas import load_schema
from trainer.config import device_option_properties, properties

# Any of these says that train_batch_size is MLPerf's: all workers together, one micro-step.
_MLPERF_ONLY = {"input_file", "bert_config_file", "num_train_steps", "num_warmup_steps", "steps_per_update"}

Values = Mapping[str, Any]


@cache
def translations() -> dict[str, dict[str, Any]]:
    """The schema of each name that differs in meaning, and what is to be made of its value."""
    found: dict[str, dict[str, Any]] = load_schema("trainer")["translations"]
    return found


@cache
def renamed() -> dict[str, str]:
    """The key that each alias stands for."""
    return {alias: name for name, item in properties().items() for alias in item.get("aliases", ())}


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may give."""
    aliases = {alias: properties()[name] for alias, name in renamed().items()}
    return {**aliases, **translations(), **device_option_properties(), **properties()}


def translate(given: Values, where: str = "", below: Values | None = None) -> dict[str, Any]:
    """The values by the trainer's own keys; SettingsError for an unknown or contradictory name.

    below: for a command line, the file's values that it overrides, by the file's names.
    """
    check_names(given, known_names(), where)
    given = {name: _whole(name, value) for name, value in given.items()}
    foreign = {name: given[name] for name in given if name in translations() and given[name] is not None}
    check_values(foreign, translations(), where)
    found: dict[str, Any] = {}
    source: dict[str, str] = {}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name == "device_options" and isinstance(value, dict):
            check_names(value, device_option_properties(), f"{where}device_options: ")
            options |= value
        elif name in device_option_properties():
            options[name] = value
        else:
            for key, meant in _meaning(name, given, below, where).items():
                if key in found and found[key] != meant:
                    raise SettingsError(
                        f"{where}{source[key]} and {name} contradict each other: both set {key}"
                    )
                found[key], source[key] = meant, name
    return found | ({"device_options": options} if options else {})


def _whole(name: str, value: Any) -> Any:
    """A whole number as an integer where one may stand: JSON knows no difference."""
    whole = isinstance(value, float) and value.is_integer() and "integer" in types_of(known_names()[name])
    return int(value) if whole else value


def _meaning(name: str, given: Values, below: Values | None, where: str) -> dict[str, Any]:
    """The keys that the name stands for, with their values."""
    value, rule = given[name], translations().get(name)
    if rule is None or value is None:
        key = renamed().get(name, name)
        return {key: value} if key in properties() else {}
    layers = (given, below or {})
    if name == "train_batch_size":
        return _train_batch_size(value, layers, where)
    if "key" not in rule:
        return rule["sets"] if value else {}
    values = rule["flag_values"] if below is not None and "flag_values" in rule else rule.get("values", {})
    value = values.get(value if isinstance(value, str) else json.dumps(value), value)
    if "divided_by" in rule:
        value = _divided(name, value, rule["divided_by"], layers, where)
    if "times" in rule:
        value *= _find([rule["times"]], layers, 8)
    if "power_of" in rule:
        value = float(rule["power_of"]) ** value
    if "negative" in rule and value < 0:
        value = None
    return {rule["key"]: value}


def _divided(name: str, value: int, by: str, layers: Sequence[Values], where: str) -> int:
    size = _find([by], layers, 1)
    if value % size:
        raise SettingsError(f"{where}{name} is {value}, expected a multiple of {by} ({size})")
    return int(value // size)


def _train_batch_size(value: int, layers: Sequence[Values], where: str) -> dict[str, Any]:
    if _MLPERF_ONLY & {name for layer in layers for name in layer}:
        count = _find(["steps_per_update"], layers, 1)
        return {"batch_size": None, "accumulation": count, "global_batch_size": value * count}
    count = _find(["accumulation", *properties()["accumulation"]["aliases"]], layers, 1)
    if value % count:
        raise SettingsError(
            f"{where}train_batch_size is {value}, a batch size that does not divide: "
            f"expected a multiple of gradient_accumulation_steps ({count})"
        )
    return {"batch_size": value // count, "accumulation": count, "global_batch_size": None}


def _find(names: Sequence[str], layers: Sequence[Values], default: int) -> int:
    """The value of the first of the names that the upper layer gives, else the lower one."""
    found = next((layer[name] for layer in layers for name in names if name in layer), default)
    check_values({"count": found}, {"count": {"type": "integer", "minimum": 1}})
    return int(found)
