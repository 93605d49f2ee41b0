"""The trainer's command line: a flag for every key.

``-`` and ``_`` are equal in a flag's name; a switch is given alone (``--wandb``), with a value
(``--wandb=false``) or negated (``--nowandb``, ``--no-wandb``).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from bertdata.config.value_check import check_names, check_values, read_object, types_of
from bertdata.errors import MissingInputError, SettingsError
from trainer.config.help import flag, make_parser
from trainer.config.schema import known_names, older_names, phase_names
from trainer.config.settings import Config

PRETRAIN = "python -m trainer pretrain"


def _none(_: Mapping[str, Any]) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Habits:
    """Habits of a command that are not those of pre-training.

    adapt: the flags by name, as given, to those that the command means. defaults: from the given keys to the
    values of others, before their usual defaults.
    """

    adapt: Callable[[dict[str, Any]], dict[str, Any]] = dict
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = _none


def make_config(arguments: Sequence[str], prog: str = PRETRAIN, habits: Habits | None = None) -> Config:
    """The configuration of the command line; of two phases the second."""
    return make_configs(arguments, prog, habits)[-1]


def make_configs(
    arguments: Sequence[str], prog: str = PRETRAIN, habits: Habits | None = None
) -> list[Config]:
    """The configurations of the command line: flags before --config's file before defaults.

    Two, phase 1's and phase 2's, where any key has two values or data for phase 2 are named; with --phase2
    only phase 2's. SettingsError names the flag, or the file and its key, in one line.
    """
    habits = habits or Habits()
    parser = make_parser(prog, list(shipped_configs()), usual=habits.defaults({}))
    flags = vars(parser.parse_args(_normal(arguments)))
    path = flags.pop("config", None)
    where = f"{path}: " if path else ""
    in_file = _read_config(path) if path else {}
    for name in in_file:
        _check_known(name, known_names(), where)
    flags = habits.adapt(_united(flags))
    count = max(_count_phases(in_file, where), _count_phases(flags))
    only_second = bool(flags.get("phase2", in_file.get("phase2")))
    configs = []
    for phase in range(count):
        named = 1 if only_second else phase
        below, above = (_of_phase(given, phase, named) for given in (in_file, flags))
        keys = _steps_or_epochs(_read_keys(below, where), _read_keys(above))
        if phase and not keys.get("phase2"):
            keys |= {"phase2": True, "phase1_end_step": None, "start_from_ckpt": None, "start_moments": False}
        try:
            configs.append(Config.of(**habits.defaults(keys) | keys))
        except SettingsError as error:  # values valid alone but not together
            raise SettingsError(f"{where}{error}") from None
    return configs[-1:] if only_second else configs


def override(
    phases: Sequence[Mapping[str, Any]], arguments: Sequence[str], prog: str
) -> list[dict[str, Any]]:
    """The keys of each phase, the command line's flags before them; of two values each phase has its own."""
    parser = make_parser(prog, list(shipped_configs()))
    flags = vars(parser.parse_args(_normal(arguments)))
    if flags.pop("config", None) is not None:
        raise SettingsError(
            f"{prog} --config: another program's command has no file of ours; give its keys as flags"
        )
    flags = _united(flags)
    numbers = [1 if len(phases) == 1 and keys.get("phase2") else number for number, keys in enumerate(phases)]
    return [
        _steps_or_epochs(dict(keys), _read_keys(_of_phase(flags, number, number)))
        for number, keys in zip(numbers, phases, strict=True)
    ]


def _read_keys(given: dict[str, Any], where: str = "") -> dict[str, Any]:
    """The values by key; SettingsError for a wrong name or value."""
    given = {name: _whole(name, value) for name, value in given.items()}
    check_values(given, known_names(), where)
    keys: dict[str, Any] = {}
    for name, value in given.items():
        key = older_names().get(name, name)
        if keys.setdefault(key, value) != value:
            raise SettingsError(f"{where}{name} is an older name of {key}: they contradict each other")
    return keys


def _check_known(name: str, known: Collection[str], where: str = "") -> None:
    """SettingsError for an unknown name, with the programs that have it, else with the nearest known one."""
    if name in known:
        return
    programs = import_module("trainer.extensions.like.registry").programs_with(name)
    if programs:
        theirs = f"{', '.join(programs)} {'has' if len(programs) == 1 else 'have'} it"
        door = f"python -m trainer like {programs[0]} ... runs such a command line"
        raise SettingsError(f"{where}{name} is not a key of this trainer; {theirs}: {door}")
    check_names([name], known, where)


def _whole(name: str, value: Any) -> Any:
    """A whole float as an integer where the key takes one: JSON has one type for both."""
    whole = isinstance(value, float) and value.is_integer() and "integer" in types_of(known_names()[name])
    return int(value) if whole else value


def shipped_configs() -> dict[str, str]:
    """The paths of the configurations that come with the trainer, by name."""
    return {path.stem: str(path) for path in sorted(Path(__file__).parent.glob("shipped/*.json"))}


def _read_config(path: str) -> dict[str, Any]:
    """The keys of a JSON file, or of the shipped configuration of that name."""
    shipped = shipped_configs()
    try:
        return read_object(shipped.get(path, path))
    except MissingInputError as error:
        nearest = get_close_matches(Path(path).stem, shipped, n=1, cutoff=0.5)
        hint = f"; the nearest configuration of the trainer's own is {nearest[0]}" if nearest else ""
        raise MissingInputError(f"{error}{hint}") from None


def _united(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with the datasets of a repeated flag united."""
    united = dict(flags)
    for name, paths in flags.items():
        if "phases" in known_names()[name]:
            united[name] = "+".join(path for path in paths if path is not None) or None
    return united


def _ambiguous(name: str, paths: Sequence[str], spell: Callable[[str], str] = str) -> str:
    """The message for datasets that might be united or each of a phase."""
    key = next((key for one, (key, _) in phase_names().items() if one == name), name)
    phases = " ".join(f"{spell(f'{key}_phase{number}')} {path}" for number, path in enumerate(paths[:2], 1))
    found = f"{spell(name)} has {len(paths)} values"
    return f"{found}: for one in each phase give {phases}; for all together {spell(key)} {'+'.join(paths)}"


def _count_phases(given: dict[str, Any], where: str = "") -> int:
    """2 where a key that may differ has two values, or data of phase 2 are named; else 1."""
    names = known_names()
    count = max([1 + phase for name, (_, phase) in phase_names().items() if name in given], default=1)
    for name, value in given.items():
        if not isinstance(value, list):
            continue
        if "phases" in names[name]:
            raise SettingsError(where + _ambiguous(name, [str(path) for path in value]))
        if "by_phase" in names[name]:
            if len(value) not in (1, 2):
                wanted = "expected one, or two: phase 1's and phase 2's"
                raise SettingsError(f"{where}{name} has {len(value)} values, {wanted}")
            count = max(count, len(value))
    return count


def _of_phase(given: dict[str, Any], phase: int, named: int) -> dict[str, Any]:
    """The given values of a phase; named: the number, from 0, by which names of data call it."""
    names, phases = known_names(), phase_names()
    layer = {}
    for name, value in given.items():
        if name in phases:
            continue
        differs = "by_phase" in names[name] and isinstance(value, list)
        layer[name] = value[phase % len(value)] if differs else value
    for name, (key, number) in phases.items():
        if name in given and number == named:
            layer[key] = given[name]
    return layer


def _steps_or_epochs(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """All keys, with steps or epochs alone: a flag's before the file's, else steps before epochs."""
    keys = below | above
    if keys.get("num_train_epochs") is None:
        return keys
    if "steps" in above or ("steps" in below and above.get("num_train_epochs") is None):
        return keys | {"num_train_epochs": None}
    keys.pop("steps", None)
    return keys


def _normal(arguments: Sequence[str]) -> list[str]:
    """The arguments with hyphens in flags, and negations as values; SettingsError for an unknown flag."""
    flags = {flag(name): name for name in known_names()}
    found = list[str]()
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            name = flag(name[2:])
            positive = "--" + name[2:].removeprefix("no").removeprefix("-")
            if name not in flags and "boolean" in types_of(known_names().get(flags.get(positive, ""), {})):
                name = positive
                equals = "="
                value = "false"
            _check_known(name, {"--config", "--help", "--help-all", *flags})
        found.append(f"{name}{equals}{value}")
    _refuse_ambiguous(found, flags)
    return found


def _refuse_ambiguous(arguments: Sequence[str], flags: Mapping[str, str]) -> None:
    """SettingsError for several datasets behind one flag, which may be united or each of a phase."""
    last, paths = "", list[str]()
    for argument in [*arguments, "--"]:
        if not argument.startswith("--"):
            paths.append(argument)
            continue
        name = flags.get(last, "")
        if len(paths) > 1 and "phases" in known_names().get(name, {}):
            raise SettingsError(_ambiguous(name, paths, flag))
        last, equals, value = argument.partition("=")
        paths = [value] if equals else []
