"""The command line of the trainer: a flag for every key and every other trainer's name of it.

``-`` and ``_`` are the same in a flag's name; a switch stands alone (``--wandb``), takes a value
(``--wandb=false``) or is negated (``--nowandb``, ``--no-wandb``).
"""

from argparse import SUPPRESS
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bertdata.cli.common.parser import Parser
from bertdata.config.value_check import check_names, read_object, read_value, types_of
from bertdata.errors import SettingsError
from trainer.aliases import known_names, renamed, translate, translations
from trainer.config import Config, device_option_properties, properties

PRETRAIN = "python -m trainer pretrain"


def make_config(arguments: Sequence[str], prog: str = PRETRAIN) -> Config:
    """The configuration that the command line asks for, of two phases the second's."""
    return make_configs(arguments, prog)[-1]


def make_configs(arguments: Sequence[str], prog: str = PRETRAIN) -> list[Config]:
    """What the command line asks for: defaults, then --config's file, then flags.

    Two, phase 1's and phase 2's, where any key has two values; with --phase2 only phase 2's.
    SettingsError, one line, names the flag, or the file and its key.
    """
    flags = vars(_parser(prog).parse_args(_normal(arguments)))
    place = flags.pop("config", None)
    where = f"{place}: " if place else ""
    layers = _by_phase(read_object(presets().get(place, place)) if place else {}, where), _by_phase(flags)
    configs = []
    for phase in range(max(map(len, layers))):
        below, above = (layer[phase % len(layer)] for layer in layers)
        keys = translate(below, where) | translate(above, below=below)
        options = {name: keys.pop(name) for name in device_option_properties() if name in keys}
        if phase and not keys.get("phase2"):
            keys |= {"phase2": True, "phase1_end_step": None, "start_from_ckpt": None}
        try:
            configs.append(Config(**keys, device_options=options))
        except SettingsError as error:  # what fits alone and not together
            raise SettingsError(f"{where}{error}") from None
    return configs[-1:] if configs[0].phase2 else configs


def _by_phase(given: dict[str, Any], where: str = "") -> list[dict[str, Any]]:
    """What is given for the phases: two where a key that may differ between them has two values."""
    may = {name for name, item in known_names().items() if "by_phase" in item}
    several = {name: value for name, value in given.items() if name in may and isinstance(value, list)}
    for name, values in several.items():
        if len(values) not in (1, 2):
            wanted = "expected one, or two: phase 1's and phase 2's"
            raise SettingsError(f"{where}{name} has {len(values)} values, {wanted}")
    count = max(map(len, several.values()), default=1)
    return [given | {name: of[phase % len(of)] for name, of in several.items()} for phase in range(count)]


def presets() -> dict[str, str]:
    """The configurations that come with the trainer, by name; their paths."""
    return {path.stem: str(path) for path in sorted(Path(__file__).parent.glob("configs/*.json"))}


def _parser(prog: str) -> Parser:
    parser = Parser(
        prog,
        f"  {prog} --config tiny --train-data shards/phase1 --output-dir run",
        "Every key below may also stand in the JSON file; - and _ are the same in a flag's name.\n"
        "Where X [X ...] stands, two values are phase 1's and phase 2's, and both phases are run.",
    )
    parser.usage = "%(prog)s [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--config", metavar="FILE", help=f"JSON file, or one of {', '.join(presets())}")
    for name, item in known_names().items():
        more: dict[str, Any] = {"nargs": "+"} if "by_phase" in item else {}
        if "boolean" in types_of(item):
            more = {"nargs": "?", "const": True}
        read = partial(read_value, kinds=types_of(item), name=_flag(name))
        common: dict[str, Any] = {"dest": name, "default": SUPPRESS, "metavar": "X"}
        parser.add_argument(_flag(name), help=_help(name), type=read, **common, **more)
    return parser


def _help(name: str) -> str:
    """What the name means: a key with its default, another trainer's, or one that only some devices know."""
    if item := properties().get(name):
        return str(item["description"]) + (f" (default: {item['default']})" if item.get("default") else "")
    if item := device_option_properties().get(name):
        return f"{item.get('description', 'accepted')}; of use on {', '.join(item['devices']) or 'no device'}"
    item = translations().get(name, {"description": renamed().get(name)})
    return f"another trainer's name: {item['description']}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _normal(arguments: Sequence[str]) -> list[str]:
    """The arguments with flags spelt with hyphens, negations as values; SettingsError for an unknown flag."""
    flags, found = {_flag(name): name for name in known_names()}, []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if argument.startswith("--"):
            flag = _flag(flag[2:])
            positive = "--" + flag[2:].removeprefix("no").removeprefix("-")
            if flag not in flags and "boolean" in types_of(known_names().get(flags.get(positive, ""), {})):
                flag, equals, value = positive, "=", "false"
            check_names([flag], {"--config", "--help", *flags})
        found.append(f"{flag}{equals}{value}")
    return found
