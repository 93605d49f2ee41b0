"""Keyword arguments of the functions as the words of a command line, which ``trainer.config`` reads."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from bertdata.config.value_check import list_types
from bertdata.errors import SettingsError
from bertdata.io.home import expand_words
from bertdata.steps.argument_names import (
    Argument,
    list_flags_of_argument,
    list_signature_arguments,
    name_arguments,
)
from trainer.commands.foreign_names import add_name_hints
from trainer.config.flags import UnknownKeyError, refuse_unknown_name
from trainer.config.settings import format_flag, get_known_names
from trainer.config.task_names import expand_task_flags, find_name_in_command

_CONFIG = "config"
"""Keyword for the file of settings, or the name of a configuration that comes with the trainer."""


_OF_COMMANDS = {
    "convert": {
        "--from": Argument(name="kind"),
        "--without-moments": Argument(name="moments", switch=False),
    }
}
"""Flags that have another name than the argument of the function, by function."""

_CALL_CHARACTERS = 100
"""Longest call that is written in one line."""

Function = TypeVar("Function", bound=Callable[..., Any])


def name_keys(function: Function) -> Function:
    """Return a public function, changed so that its errors and warnings name arguments instead of flags."""

    def list_arguments() -> Mapping[str, Argument]:
        found = list_signature_arguments(function) | _OF_COMMANDS.get(function.__name__, {})
        kinds = (item.kind for item in signature(function).parameters.values())
        if Parameter.VAR_KEYWORD in kinds:  # the keywords are the keys of the configuration
            for name, schema in get_known_names().items():
                short = find_name_in_command(name, function.__name__)
                for spelling in (name, short):
                    found |= list_flags_of_argument(spelling, is_switch="boolean" in list_types(schema))
            found |= list_flags_of_argument(_CONFIG, is_switch=False)
        return found

    return cast(Function, name_arguments(function, list_arguments))


def format_call(function: str, keys: Mapping[str, Any]) -> str:
    """Return the call of a public function as Python code, for the log and the report of the run.

    >>> format_call("pretrain", {"config": "tiny", "steps": 5})
    'trainer.pretrain(config="tiny", steps=5)'
    """
    given = [f"{name}={_format_python(value)}" for name, value in keys.items() if value is not None]
    line = f"trainer.{function}({', '.join(given)})"
    if len(line) <= _CALL_CHARACTERS:
        return line
    return "\n".join([f"trainer.{function}(", *(f"    {one}," for one in given), ")"])


def _format_python(value: Any) -> str:
    """Return the value of a key as Python code, with texts in double quotes and paths as texts."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_python, value))}]"
    item = getattr(value, "item", None)  # numbers of NumPy and of torch
    return repr(item() if callable(item) else value)


def make_words(keys: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that gives these values to keys of the configuration.

    Values may be texts, numbers, truth values, paths, and lists of them. A key whose value is None is left
    out. Raises SettingsError for an unknown name, with this trainer's name for the same setting if another
    program has that name, and for ``dist``.

    >>> make_words({"train_data": "shards", "steps": [5, 7], "wandb": True})
    ['--train-data=shards', '--steps', '5', '7', '--wandb=true']
    """
    words: list[str] = []
    for name, value in keys.items():
        if value is not None:
            words += _make_words_of_key(name, value)
    return expand_words(words)


def _make_words_of_key(name: str, value: Any) -> Iterator[str]:
    """Yield the words that give a key its value."""
    if name == _CONFIG:
        yield f"--config={os.fspath(value)}"
        return
    (flag,) = expand_task_flags([format_flag(name)])
    key = flag.removeprefix("--").replace("-", "_")
    try:
        refuse_unknown_name(key, "")
    except UnknownKeyError as error:
        raise add_name_hints(error) from None
    if key == "dist" and value:
        raise SettingsError(
            "dist: a Python program trains with one worker; start several with python -m trainer and --dist, "
            "or start your program with torchrun"
        )
    schema = get_known_names()[key]
    is_list = isinstance(value, list | tuple)
    if is_list and "by_phase" in schema:
        yield from (flag, *(_format_value(name, item) for item in value))
    elif is_list and "phases" in schema:
        yield from (f"{flag}={_format_value(name, item)}" for item in value)
    elif is_list and "array" in list_types(schema):
        yield f"{flag}={json.dumps([_format_value(name, item) for item in value])}"
    elif isinstance(value, Mapping):
        yield f"{flag}={json.dumps(dict(value))}"
    else:
        yield f"{flag}={_format_value(name, value)}"


def _format_value(name: str, value: Any) -> str:
    """Return a value as a word of the command line.

    name: the key, for the error message.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    item = getattr(value, "item", None)  # numbers of NumPy and of torch
    if callable(item):
        return _format_value(name, item())
    raise SettingsError(
        f"{name} is of type {type(value).__name__}, expected a text, a number, a path or a list"
    )
