"""The trainer's command line: a flag for every key.

``-`` and ``_`` are equal in a flag's name; a switch is given alone (``--wandb``), with a value
(``--wandb=false``) or negated (``--nowandb``, ``--no-wandb``).
"""

from argparse import SUPPRESS, ArgumentError, ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bertdata.config.value_check import check_names, check_values, types_of
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective
from trainer.config.settings import Config, add_flag, by_key, flag, known_names, phase_names, united
from trainer.config.value_sources import Layered, over_model_file, under_model_file

PRETRAIN = "python -m trainer pretrain"
_NO_KEYS = ("config", "help", "help_all")


class UnknownKeyError(SettingsError):
    """A flag, or a key of a configuration file, that the trainer does not have.

    name: the flag with its hyphens, or the key. where: the file, as the beginning of a message.
    """

    def __init__(self, name: str, where: str, message: str) -> None:
        super().__init__(message)
        self.name, self.where = name, where


def make_config(arguments: Sequence[str], prog: str = PRETRAIN) -> Config:
    """The configuration of the command line, of the second phase where there are two."""
    return make_configs(arguments, prog)[-1]


def make_configs(
    arguments: Sequence[str],
    prog: str = PRETRAIN,
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda keys: {},
) -> list[Config]:
    """The configurations of the command line, as ``make_layered`` makes them, without their sources."""
    return [phase.config for phase in make_layered(arguments, prog, defaults)]


def make_layered(
    arguments: Sequence[str],
    prog: str = PRETRAIN,
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda keys: {},
) -> list[Layered]:
    """The configurations of the command line: flags before --config's file before defaults.

    Two, phase 1's and phase 2's, where any key has two values or data for phase 2 are named; with --phase2
    only phase 2's. SettingsError names the flag, or the file and its key, in one line.

    defaults: from the given keys to the command's own values of others, before their usual defaults.
    """
    flags = read_flags(arguments, prog, defaults({}))
    path = flags.pop("config", None)
    where = f"{path}: " if path else ""
    in_file: dict[str, Any] = {}
    if path:
        from trainer.config.files import read_config

        in_file = read_config(path)
    for name in in_file:
        _check_known(name, where)
    phases = [(in_file, flags)]
    given = (*in_file.items(), *flags.items())
    if any(isinstance(value, list) or name in phase_names() for name, value in given):
        from trainer.config.phases import values_by_phase

        phases = values_by_phase(in_file, flags, where)
    layered: list[Layered] = []
    for below, above in phases:
        lower, upper = read_keys(below, where), read_keys(above)
        lower, contradictions = under_model_file(lower, upper, str(path))
        keys = lower | upper
        if not {"num_train_epochs", "train_tokens"}.isdisjoint(keys):
            from trainer.config.phases import steps_or_epochs

            keys = steps_or_epochs(lower, upper)
        usual = defaults(keys)
        sources = dict.fromkeys(usual, prog.rpartition(" ")[2])
        sources |= dict.fromkeys(lower, str(path)) | {name: flag(name) for name in upper}
        try:
            config = Config.of(**usual | keys)
        except SettingsError as error:  # values valid alone but not together
            raise SettingsError(f"{where}{error}") from None
        contradictions += over_model_file(keys, sources)
        layered.append(Layered(config=config, sources=sources, contradictions=contradictions))
    only_second = flags.get("phase2", in_file.get("phase2"))
    for phase in layered:
        if phase.config.data.objective is not None:
            # Loads an objective of somebody's own, which no data may choose.
            find_objective(phase.config.data.objective)
    return layered[-1:] if only_second else layered


def read_flags(words: Sequence[str], prog: str, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of a command line's flags by name, a list where a key has one of each phase.

    The parser knows the given flags alone. One that knows all prints the help, and refuses words that are
    out of place. usual: the command's own defaults.
    """
    normal = [_normal(word) if word.startswith("--") else word for word in words]
    names = {word[2:].partition("=")[0].replace("-", "_") for word in normal if word.startswith("--")}
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", default=SUPPRESS)
    for name in sorted(names & known_names().keys()):
        add_flag(parser, name)
    if {"help", "help_all"}.isdisjoint(names):
        with suppress(ArgumentError):
            given, out_of_place = parser.parse_known_args(normal)
            if not out_of_place:
                return united(vars(given))
    from trainer.config.help import read_with_argparse

    return read_with_argparse(normal, prog, usual or {})


def _normal(word: str) -> str:
    """The flag with hyphens in its name, and a negation as a value. SettingsError for an unknown flag."""
    given, equals, value = word[2:].partition("=")
    name, known = given.replace("-", "_"), known_names()
    positive = name.removeprefix("no").removeprefix("_")
    if name not in known and "boolean" in types_of(known.get(positive, {})):
        return f"{flag(positive)}=false"
    if name not in _NO_KEYS:
        _check_known(name, "--")
    return f"{flag(name)}{equals}{value}"


def read_keys(given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The values by key. SettingsError for a wrong value."""
    given = {name: _whole(name, value) for name, value in given.items()}
    check_values(given, known_names(), where)
    return by_key(given, where)


def _whole(name: str, value: Any) -> Any:
    """A whole float as an integer where the key takes one: JSON has one type for both."""
    whole = isinstance(value, float) and value.is_integer() and "integer" in types_of(known_names()[name])
    return int(value) if whole else value


def _check_known(name: str, where: str) -> None:
    """UnknownKeyError for an unknown name. where: the file, or the hyphens of a flag."""
    known: Collection[str] = known_names()
    if name in known:
        return
    if where == "--":
        name, where = flag(name), ""
        known = {"--config", "--help", "--help-all", *map(flag, known)}
    try:
        check_names([name], known, where)
    except SettingsError as error:
        raise UnknownKeyError(name, where, str(error)) from None
