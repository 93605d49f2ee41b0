"""The command line of the trainer: a flag for every key and every other trainer's name of it.

``-`` and ``_`` are the same in a flag's name; a switch stands alone (``--wandb``), takes a value
(``--wandb=false``) or is negated (``--nowandb``, ``--no-wandb``).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from bertdata.errors import SettingsError
from bertdata.parser import Parser
from trainer.aliases import TRANSLATIONS, Layer, known_names, renamed, translate, types_of
from trainer.config import Config, check_keys, check_names, device_option_properties, properties, read_json

_OFF, _ON = ("false", "no", "0", "off"), ("true", "yes", "1", "on")


def make_config(arguments: Sequence[str], prog: str = "python -m trainer pretrain") -> Config:
    """The configuration that the command line asks for: defaults, then --config's file, then flags.

    SettingsError, one line, names the flag, or the file and its key.
    """
    given = vars(_parser(prog).parse_args(_normal(arguments)))
    place = given.pop("config")
    below = read_json(find_preset(place)) if place else {}
    where = f"{place}: " if place else ""
    file_keys = translate(Layer(given=below), where)
    check_keys(file_keys, where)
    texts = {name: text for name, text in given.items() if text is not None}
    flags = Layer(
        given={name: _value(name, text) for name, text in texts.items()}, below=below, command_line=True
    )
    keys = translate(flags)
    check_keys(keys)
    options = file_keys.get("device_options", {}) | keys.get("device_options", {})
    try:
        return Config(**file_keys | keys | {"device_options": options})
    except SettingsError as error:  # what fits alone and not together
        raise SettingsError(f"{where}{error}") from None


def find_preset(place: str) -> str:
    """The path of a configuration file, given as a path or as the name of one in trainer/configs."""
    preset = resources.files("trainer").joinpath("configs", f"{place.removesuffix('.json')}.json")
    bare = "/" not in place and not Path(place).exists()
    return str(preset) if bare and preset.is_file() else place


def preset_names() -> list[str]:
    """The names of the configurations that come with the trainer."""
    files = resources.files("trainer").joinpath("configs").iterdir()
    return sorted(item.name.removesuffix(".json") for item in files if item.name.endswith(".json"))


def _parser(prog: str) -> Parser:
    parser = Parser(
        prog,
        f"  {prog} --config tiny --train-data shards/phase1 --output-dir run",
        "Every key below may also stand in the JSON file; - and _ are the same in a flag's name.",
    )
    parser.usage = "%(prog)s [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--config", metavar="FILE", help=f"JSON file, or one of {', '.join(preset_names())}")
    own = parser.add_argument_group("keys")
    for item in fields(Config):
        if item.name != "device_options":
            default = "" if item.default in (None, False) else f" (default: {item.default})"
            _add(own, item.name, properties()[item.name]["description"] + default)
    others = parser.add_argument_group("names of other trainers, which mean")
    own_names = {item.name for item in fields(Config)}
    for name in sorted((set(renamed()) | set(TRANSLATIONS)) - own_names):
        meaning = TRANSLATIONS[name].meaning if name in TRANSLATIONS else renamed()[name]
        _add(others, name, meaning)
    foreign = parser.add_argument_group("accepted, and named in the log where the device has no use for them")
    for name in sorted(device_option_properties()):
        _add(foreign, name, ", ".join(device_option_properties()[name]["devices"]) or "no device")
    return parser


def _add(group: Any, name: str, help: str) -> None:
    switch = {"nargs": "?", "const": "true"} if "boolean" in types_of(name) else {}
    metavar = "BOOL" if switch else "X"
    group.add_argument(_flag(name), dest=name, metavar=metavar, help=help, **switch)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _normal(arguments: Sequence[str]) -> list[str]:
    """The arguments with flags spelt with hyphens, negations as values; SettingsError for an unknown flag."""
    known, found = known_names() | {"config", "help", "device_options"}, []
    for argument in arguments:
        if not argument.startswith("--"):
            found.append(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        name = name.replace("-", "_")
        positive = name.removeprefix("no").removeprefix("_")
        if name not in known and positive in known and "boolean" in types_of(positive):
            name, equals, value = positive, "=", "false"
        check_names([_flag(name)], set(map(_flag, known)))
        found.append(f"{_flag(name)}{equals}{value}")
    return found


def _value(name: str, text: str) -> Any:
    """The text as the first of the name's JSON types that it fits; SettingsError where none does."""
    kinds = types_of(name)
    if "null" in kinds and text.lower() in ("none", "null"):
        return None
    for kind in kinds:
        try:
            return _READERS[kind](text)
        except (ValueError, KeyError):
            continue
    wanted = " or ".join(kind for kind in kinds if kind != "null")
    raise SettingsError(f"{_flag(name)} is {text!r}, expected the type {wanted}")


def _boolean(text: str) -> bool:
    return {**dict.fromkeys(_ON, True), **dict.fromkeys(_OFF, False)}[text.lower()]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        if float(text).is_integer():
            return int(float(text))
        raise


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "string": str,
    "object": json.loads,
    "array": json.loads,
}
