"""Error messages that name the arguments of Python functions instead of the flags of commands.

A step raises the same errors for the command line and for Python, and their messages name flags, such as
``--num-shards N``. For a caller of the Python function, the flags are replaced by its arguments, here
``num_shards=N``.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, ParamSpec, TypeVar

from bertdata.errors import BertDataError

Keywords = ParamSpec("Keywords")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """An argument of a Python function that does what a flag does.

    name: name of the argument.
    switch: value that a flag without a value gives to the argument. None: the flag takes a value.
    is_list: True if the argument takes a list, and the flag may be repeated.
    """

    name: str
    switch: bool | None = None
    is_list: bool = False


Arguments = Mapping[str, Argument]
"""Arguments of a function, by the flag that does the same."""

_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:([= ])(?!--)([^\s=,;)][^\s,;)]*))?")
"""Matches a flag, and the word after it, which may be the flag's value."""
_COMMAND = re.compile(
    r"\b(?:bertdata [a-z-]+|python3? -m \S+|pip \w+|torchrun|horovodrun"
    r"|(?:extract|segment|create|pack|convert|features|pretrain|finetune|evaluate)(?= (?:[A-Z]+ )*--))[^;:]*"
)
"""Matches a command to type in a shell, whose flags stay as they are."""
_METAVAR = re.compile(r"[A-Z][A-Z0-9_|.=%]*|\.\.\.")
_NUMBER = re.compile(r"-?\d[\d.e-]*")
_VERBS = frozenset(
    (
        *("are", "checks", "gives", "goes", "has", "is", "leaves", "lets", "makes", "names", "needs"),
        *("takes", "tells"),
    )
)
"""Verbs of which a flag may be the subject, as in "--bin-size is 9". The argument then has its bare name."""
_NO_VALUES = frozenset(
    (
        *("above", "again", "alone", "and", "as", "at", "be", "below", "by", "can", "continues", "for"),
        *("from", "go", "have", "here", "if", "in", "instead", "it", "made", "may", "must", "name", "need"),
        *("of", "on", "only", "or", "out", "say", "take", "than", "that", "the", "then", "there", "this"),
        *("to", "too", "was", "where", "which", "with", "without", "would"),
    )
)
"""Further words that follow a flag in a sentence and are not its value."""


def rewrite_flags(message: str, arguments: Arguments) -> str:
    """Return a message in which flags are replaced by the arguments of a Python function.

    Flags that belong to no argument, and flags in a command to type in a shell, are not replaced.

    >>> rewrite_flags("--shuffle needs --num-shards N", {"--num-shards": Argument(name="num_shards")})
    '--shuffle needs num_shards=N'
    """
    commands = [found.span() for found in _COMMAND.finditer(message)]

    def replace_flag(found: re.Match[str]) -> str:
        if any(start <= found.start() < stop for start, stop in commands):
            return found[0]
        return _format_argument(found, arguments)

    return _FLAG.sub(replace_flag, message)


def _format_argument(found: re.Match[str], arguments: Arguments) -> str:
    """Return the text that replaces a flag and the word after it.

    found: match of _FLAG.
    """
    flag, between, word = found[1], found[2] or "", found[3] or ""
    argument = arguments.get(flag)
    if argument is None:
        return found[0]
    if argument.switch is not None:
        return f"{argument.name}={argument.switch}{between}{word}"
    # The word may end with a mark of punctuation: "--vocab words.txt: is a directory".
    value = word.rstrip(":.")
    if (not value and found.string[found.end() :].startswith(":")) or value in _VERBS:
        return f"{argument.name}{between}{word}"
    if not value or (between == " " and value in _NO_VALUES):
        return f"{argument.name}={between}{word}"
    return f"{argument.name}={_quote_value(value, argument)}{word[len(value) :]}"


def _quote_value(value: str, argument: Argument) -> str:
    """Return the value of a flag as it is written in Python: texts in quotes, others as they are."""
    if not (_METAVAR.fullmatch(value) or _NUMBER.fullmatch(value)):
        value = '"' + value.strip("'\"") + '"'
    return f"[{value}]" if argument.is_list else value


def list_signature_arguments(function: Callable[..., Any]) -> dict[str, Argument]:
    """Return the arguments of a function, by flag. The flag has the argument's name, with dashes.

    An argument with a plural name, such as ``roles``, also has the flag ``--role``, which may be repeated.
    """
    found: dict[str, Argument] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            found |= list_flags_of_argument(name, is_switch="bool" in str(parameter.annotation))
    return found


def list_flags_of_argument(name: str, *, is_switch: bool) -> dict[str, Argument]:
    """Return what the flags of an argument do, by flag.

    is_switch: True if the argument is a truth value. A flag with ``--no-`` then sets it to False.
    """
    flag = f"--{name.replace('_', '-')}"
    if is_switch:
        on, off = Argument(name=name, switch=True), Argument(name=name, switch=False)
        return {flag: on, flag.replace("--", "--no-", 1): off}
    found = {flag: Argument(name=name)}
    if flag.endswith("s") and not flag.endswith("ss"):
        found[flag[:-1]] = Argument(name=name, is_list=True)
    return found


@functools.cache
def name_arguments(
    function: Callable[Keywords, Result],
    list_arguments: Callable[[], Arguments] | None = None,
) -> Callable[Keywords, Result]:
    """Return the function, changed so that its errors and warnings name arguments instead of flags.

    list_arguments: function that returns the arguments by flag. None: they follow from the signature.
    """

    @functools.wraps(function)
    def call(*places: Keywords.args, **keywords: Keywords.kwargs) -> Result:
        try:
            result = function(*places, **keywords)
        except BertDataError as error:
            # The error itself is kept, because it may belong to a subclass with further attributes.
            if error.args:
                error.args = (rewrite_flags(str(error.args[0]), find_arguments()), *error.args[1:])
            raise
        warnings = getattr(result, "warnings", None)
        if isinstance(warnings, tuple) and warnings and is_dataclass(result) and not isinstance(result, type):
            rewritten = tuple(rewrite_flags(warning, find_arguments()) for warning in warnings)
            return replace(result, warnings=rewritten)
        return result

    def find_arguments() -> Arguments:
        return list_signature_arguments(function) if list_arguments is None else list_arguments()

    return call
