"""The trainer's command line: a flag for every key and for other trainers' names of it.

``-`` and ``_`` are equal in a flag's name; a switch is given alone (``--wandb``), with a value
(``--wandb=false``) or negated (``--nowandb``, ``--no-wandb``).
"""

from argparse import SUPPRESS
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bertdata.cli.common.parser import Parser
from bertdata.config.value_check import check_names, read_object, read_value, types_of
from bertdata.errors import SettingsError
from trainer.config.foreign.aliases import known_names, renamed, translate, translations
from trainer.config.schema import device_option_properties, properties
from trainer.config.settings import Config

PRETRAIN = "python -m trainer pretrain"


def make_config(arguments: Sequence[str], prog: str = PRETRAIN) -> Config:
    """The configuration of the command line; of two phases the second."""
    return make_configs(arguments, prog)[-1]


def make_configs(arguments: Sequence[str], prog: str = PRETRAIN) -> list[Config]:
    """The configurations of the command line: flags before --config's file before defaults.

    Two, phase 1's and phase 2's, where any key has two values; with --phase2 only phase 2's.
    SettingsError names the flag, or the file and its key, in one line.
    """
    flags = vars(_parser(prog).parse_args(_normal(arguments)))
    path = flags.pop("config", None)
    where = f"{path}: " if path else ""
    in_file = read_object(shipped_configs().get(path, path)) if path else {}
    layers = _by_phase(in_file, where), _by_phase(flags)
    configs = []
    for phase in range(max(map(len, layers))):
        below, above = (layer[phase % len(layer)] for layer in layers)
        keys = translate(below, where) | translate(above, below=below)
        if phase and not keys.get("phase2"):
            keys |= {"phase2": True, "phase1_end_step": None, "start_from_ckpt": None}
        try:
            configs.append(Config.of(**keys))
        except SettingsError as error:  # values valid alone but not together
            raise SettingsError(f"{where}{error}") from None
    return configs[-1:] if configs[0].run.phase2 else configs


def _by_phase(given: dict[str, Any], where: str = "") -> list[dict[str, Any]]:
    """The given values of each phase; two phases where a key that may differ has two values."""
    may_differ = {name for name, item in known_names().items() if "by_phase" in item}
    lists = {name: value for name, value in given.items() if name in may_differ and isinstance(value, list)}
    for name, values in lists.items():
        if len(values) not in (1, 2):
            wanted = "expected one, or two: phase 1's and phase 2's"
            raise SettingsError(f"{where}{name} has {len(values)} values, {wanted}")
    count = max(map(len, lists.values()), default=1)
    return [
        given | {name: values[phase % len(values)] for name, values in lists.items()}
        for phase in range(count)
    ]


def shipped_configs() -> dict[str, str]:
    """The paths of the configurations that come with the trainer, by name."""
    return {path.stem: str(path) for path in sorted(Path(__file__).parent.glob("shipped/*.json"))}


def _parser(prog: str) -> Parser:
    parser = Parser(
        prog,
        f"  {prog} --config tiny --train-data shards/phase1 --output-dir run",
        "Every key below may also be in the JSON file; - and _ are equal in a flag's name.\n"
        "A key with X [X ...] takes two values, phase 1's and phase 2's; then both phases are run.",
    )
    parser.usage = "%(prog)s [--config FILE] [--KEY VALUE ...]"
    parser.add_argument(
        "--config", metavar="FILE", help=f"JSON file, or one of {', '.join(shipped_configs())}"
    )
    for name, item in known_names().items():
        more: dict[str, Any] = {"nargs": "+"} if "by_phase" in item else {}
        if "boolean" in types_of(item):
            more = {"nargs": "?", "const": True}
        read = partial(read_value, kinds=types_of(item), name=_flag(name))
        common: dict[str, Any] = {"dest": name, "default": SUPPRESS, "metavar": "X"}
        parser.add_argument(_flag(name), help=_help(name), type=read, **common, **more)
    return parser


def _help(name: str) -> str:
    """The help text of a key, of a key of some devices, or of another trainer's name."""
    if item := properties().get(name):
        return str(item["description"]) + (f" (default: {item['default']})" if item.get("default") else "")
    if item := device_option_properties().get(name):
        devices = ", ".join(item["devices"]) or "no device"
        return f"{item.get('description', 'accepted')}; has an effect on {devices}"
    item = translations().get(name, {"description": renamed().get(name)})
    return f"another trainer's name: {item['description']}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _normal(arguments: Sequence[str]) -> list[str]:
    """The arguments with hyphens in flags, and negations as values; SettingsError for an unknown flag."""
    flags = {_flag(name): name for name in known_names()}
    found = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if argument.startswith("--"):
            flag = _flag(flag[2:])
            positive = "--" + flag[2:].removeprefix("no").removeprefix("-")
            if flag not in flags and "boolean" in types_of(known_names().get(flags.get(positive, ""), {})):
                flag = positive
                equals = "="
                value = "false"
            check_names([flag], {"--config", "--help", *flags})
        found.append(f"{flag}{equals}{value}")
    return found
