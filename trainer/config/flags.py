"""The trainer's command line, with a flag for every configuration key.

``-`` and ``_`` are equal in a flag's name. A switch is set alone (``--wandb``), with a value
(``--wandb=false``) or negated (``--nowandb``, ``--no-wandb``).
"""

from argparse import SUPPRESS, ArgumentError, ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bertdata.config.value_check import check_names, check_values, list_types
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective
from trainer.config.fitted_defaults import fit_defaults
from trainer.config.settings import (
    Config,
    add_flag,
    format_flag,
    get_known_names,
    get_phase_names,
    join_values,
    rename_to_keys,
)
from trainer.config.value_sources import LayeredConfig, drop_keys_of_model_file, warn_of_overridden_keys

PRETRAIN = "python -m trainer pretrain"
_NO_KEYS = ("config", "help", "help_all")


class UnknownKeyError(SettingsError):
    """The command line or a configuration file contains a name that is no key of the trainer.

    name: the flag with its hyphens, or the key.
    where: the file and a colon, with which the message begins. Empty for a flag.
    """

    def __init__(self, name: str, where: str, message: str) -> None:
        super().__init__(message)
        self.name, self.where = name, where


def make_config(arguments: Sequence[str], prog: str = PRETRAIN) -> Config:
    """Return the configuration of a command line. If it has two phases, return phase 2's."""
    return make_configs(arguments, prog)[-1]


def make_configs(
    arguments: Sequence[str],
    prog: str = PRETRAIN,
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda keys: {},
) -> list[Config]:
    """Return the configuration of each phase of a command line. See ``make_layered`` for the arguments."""
    return [phase.config for phase in make_layered(arguments, prog, defaults)]


def make_layered(
    arguments: Sequence[str],
    prog: str = PRETRAIN,
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda keys: {},
) -> list[LayeredConfig]:
    """Return the configuration of each phase of a command line, with the source of each value.

    A key may have values in several sources. The first listed source with a value decides: the flags, the
    file of --config, the command's defaults, the defaults of ``trainer.config.sections`` (which give way to
    set keys that they contradict, see ``fit_defaults``). There are two
    phases if any key has two values, or if data for phase 2 are named. With --phase2 only phase 2 is
    returned.

    SettingsError for a wrong name or value. The message names the flag, or the file and its key.

    arguments: the words of the command line after the command.
    prog: the program and its command, for messages. The command is the last word.
    defaults: function that returns the command's defaults. Its argument is the keys that are set.
    """
    flags = read_flags(arguments, prog, defaults({}))
    path = flags.pop("config", None)
    where = f"{path}: " if path else ""
    in_file: dict[str, Any] = {}
    if path:
        from trainer.config.files import read_config

        in_file = read_config(path)
    for name in in_file:
        refuse_unknown_name(name, where)
    # From here on, each phase has two layers: the keys of the file, and the flags that override them.
    # `--steps 5 7` makes two phases, whose flags are {steps: 5} and {steps: 7, phase2: True}.
    phases = [(in_file, flags)]
    given = (*in_file.items(), *flags.items())
    if any(isinstance(value, list) or name in get_phase_names() for name, value in given):
        from trainer.config.phases import split_by_phase

        phases = split_by_phase(in_file, flags, where)
    layered: list[LayeredConfig] = []
    for below, above in phases:
        lower, upper = read_keys(below, where), read_keys(above)
        # A model file named by --model-config on the command line also overrides the model's keys in the
        # configuration file. Otherwise a shipped configuration's hidden_size would silently change the model
        # that the user's model file describes.
        lower, contradictions = drop_keys_of_model_file(lower, upper, str(path))
        keys = lower | upper
        if not {"num_train_epochs", "train_tokens"}.isdisjoint(keys):
            from trainer.config.phases import merge_length_keys

            keys = merge_length_keys(lower, upper)
        # The command's defaults depend on which keys are set. For example, finetune sets AdamW's learning
        # rate schedule only if no optimiser is set.
        usual = fit_defaults(keys) | defaults(keys)
        sources = dict.fromkeys(usual, prog.rpartition(" ")[2])
        sources |= dict.fromkeys(lower, str(path)) | {name: format_flag(name) for name in upper}
        try:
            config = Config.of(**usual | keys)
        except SettingsError as error:  # each value is valid alone, but two of them contradict each other
            raise SettingsError(f"{where}{error}") from None
        contradictions += warn_of_overridden_keys(keys, sources)
        layered.append(LayeredConfig(config=config, sources=sources, contradictions=contradictions))
    # With --phase2, every entry of ``layered`` describes phase 2 (see split_by_phase). The last is returned.
    only_second = flags.get("phase2", in_file.get("phase2"))
    for phase in layered:
        if phase.config.data.objective is not None:
            # Import a user's objective by the name on the command line. Data may only name objectives that
            # are already imported, so that a data file cannot choose code to run.
            find_objective(phase.config.data.objective)
    return layered[-1:] if only_second else layered


def read_flags(words: Sequence[str], prog: str, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parse a command line. Return the values of its flags under the names of their keys.

    A flag with two values, one for each phase, gives a list. The first parser knows only the flags in use,
    because adding more than 200 flags to argparse is slow. If it cannot parse the words, or they ask for
    help, a parser of all flags prints the help or the error.

    usual: defaults of the command, which the help shows.
    """
    normal = [_normalise_flag(word) if word.startswith("--") else word for word in words]
    names = {word[2:].partition("=")[0].replace("-", "_") for word in normal if word.startswith("--")}
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", default=SUPPRESS)
    for name in sorted(names & get_known_names().keys()):
        add_flag(parser, name)
    if {"help", "help_all"}.isdisjoint(names):
        with suppress(ArgumentError):
            given, out_of_place = parser.parse_known_args(normal)
            if not out_of_place:
                return join_values(vars(given))
    from trainer.config.help import read_with_argparse

    return read_with_argparse(normal, prog, usual or {})


def _normalise_flag(word: str) -> str:
    """Return a word of the command line in the form that the parser knows. SettingsError for an unknown flag.

    Underscores in a flag's name become hyphens, and a negated switch becomes a switch with the value false:

    --train_data=x -> --train-data=x
    --nowandb -> --wandb=false
    """
    given, equals, value = word[2:].partition("=")
    name, known = given.replace("-", "_"), get_known_names()
    positive = name.removeprefix("no").removeprefix("_")
    if name not in known and "boolean" in list_types(known.get(positive, {})):
        return f"{format_flag(positive)}=false"
    if name not in _NO_KEYS:
        refuse_unknown_name(name, "--")
    return f"{format_flag(name)}{equals}{value}"


def read_keys(given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Check keys and values of a file or a command line. Return the values under the names of the keys.

    Keys may be given by their other spellings and older names. SettingsError for an unknown name or a wrong
    value.
    where: the file and a colon, with which the message begins. Empty for flags.
    """
    given = {name: _convert_whole_number(name, value) for name, value in given.items()}
    check_values(given, get_known_names(), where)
    return rename_to_keys(given, where)


def _convert_whole_number(name: str, value: Any) -> Any:
    """Return a float without fraction as an integer if the key takes integers.

    JSON does not distinguish 8 from 8.0.
    """
    whole = (
        isinstance(value, float) and value.is_integer() and "integer" in list_types(get_known_names()[name])
    )
    return int(value) if whole else value


def refuse_unknown_name(name: str, where: str) -> None:
    """Raise UnknownKeyError unless the name is a key or another spelling of a key.

    where: the file and a colon, with which the message begins, or ``--`` for a flag.
    """
    known: Collection[str] = get_known_names()
    if name in known:
        return
    if where == "--":
        name, where = format_flag(name), ""
        known = {"--config", "--help", "--help-all", *map(format_flag, known)}
    try:
        check_names([name], known, where)
    except SettingsError as error:
        raise UnknownKeyError(name, where, str(error)) from None
