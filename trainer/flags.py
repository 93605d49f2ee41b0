"""The command line of the trainer: a flag for every key and every other trainer's name of it.

``-`` and ``_`` are the same in a flag's name; a switch stands alone (``--wandb``), takes a value
(``--wandb=false``) or is negated (``--nowandb``, ``--no-wandb``).
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from bertdata.checking import check_names, check_values, read_object, read_value, types_of
from bertdata.errors import SettingsError
from bertdata.parser import Parser
from trainer.aliases import known_names, renamed, translate, translations
from trainer.config import Config, device_option_properties, properties


def make_config(arguments: Sequence[str], prog: str = "python -m trainer pretrain") -> Config:
    """The configuration that the command line asks for: defaults, then --config's file, then flags.

    SettingsError, one line, names the flag, or the file and its key.
    """
    given = vars(_parser(prog).parse_args(_normal(arguments)))
    place = given.pop("config")
    below = read_object(find_preset(place)) if place else {}
    where = f"{place}: " if place else ""
    file_keys = translate(below, where)
    check_values(file_keys, properties(), where)
    flags = {
        name: read_value(text, types_of(known_names()[name]), _flag(name))
        for name, text in given.items()
        if text is not None
    }
    keys = translate(flags, below=below)
    check_values(keys, properties())
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
    options, own = device_option_properties(), properties()
    others = dict(sorted((renamed() | _meanings(translations())).items()))
    devices = {name: ", ".join(options[name]["devices"]) or "no device" for name in sorted(options)}
    for title, names in (
        ("keys", _meanings(own)),
        ("names of other trainers, which mean", {name: others[name] for name in others if name not in own}),
        ("accepted, and named in the log where the device has no use for them", devices),
    ):
        group = parser.add_argument_group(title)
        for name, help in names.items():
            switch = "boolean" in types_of(known_names()[name])
            more: dict[str, Any] = {"nargs": "?", "const": "true", "metavar": "BOOL"} if switch else {}
            group.add_argument(_flag(name), dest=name, help=help, **{"metavar": "X"} | more)
    return parser


def _meanings(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What each name means, and its default; device options have flags of their own."""
    return {
        name: item["description"] + (f" (default: {item['default']})" if item.get("default") else "")
        for name, item in schemas.items()
        if name != "device_options"
    }


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _normal(arguments: Sequence[str]) -> list[str]:
    """The arguments with flags spelt with hyphens, negations as values; SettingsError for an unknown flag."""
    known, found = {"config", "help", *known_names()}, []
    for argument in arguments:
        if not argument.startswith("--"):
            found.append(argument)
            continue
        name, equals, value = argument[2:].partition("=")
        name = name.replace("-", "_")
        positive = name.removeprefix("no").removeprefix("_")
        if name not in known and "boolean" in types_of(known_names().get(positive, {})):
            name, equals, value = positive, "=", "false"
        check_names([_flag(name)], set(map(_flag, known)))
        found.append(f"{_flag(name)}{equals}{value}")
    return found
