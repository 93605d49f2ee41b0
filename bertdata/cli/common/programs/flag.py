"""A flag of another program, and the kinds of values that flags have."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.absl_flags import boolean, integer

SWITCH = "switch"
"""Kind of a flag without a value: true where it is on the command line."""

Kind = Callable[[str], Any] | str
"""SWITCH, or the reader of a value's text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A flag of another program, as its file states it.

    names: every spelling, the one that names the value last. default: the program's; with a count that of all
    values. meaning: a line of help, with the unit. key: the key of our own configuration that has the same
    value. values: what the program accepts, each with the value that it stands for in the key. count: number
    of values that follow; "+" one or more, "?" at most one, without which it is true. idle: the flag has no
    effect here, and meaning says why. warning: printed where the flag is on the command line.
    """

    names: str
    kind: Kind = str
    default: Any = None
    meaning: str = ""
    key: str | None = None
    values: Mapping[Any, Any] | Sequence[Any] | None = None
    count: int | str | None = None
    required: bool = False
    idle: bool = False
    warning: str = ""

    @property
    def spellings(self) -> list[str]:
        return self.names.split()

    @property
    def name(self) -> str:
        """The name of the value: the last spelling, with underscores."""
        return self.spellings[-1].lstrip("-").replace("-", "_")

    @property
    def is_boolean(self) -> bool:
        return self.kind is boolean or self.kind == SWITCH

    @property
    def effect(self) -> str:
        """The meaning, or that the flag has no effect here, and why."""
        if not self.idle:
            return self.meaning
        return f"without effect here{': ' if self.meaning else ''}{self.meaning}"

    @property
    def shown_default(self) -> str | None:
        """The default as help and pages show it. None for a flag without one, and for a switch."""
        return None if self.default is None or self.kind == SWITCH else _shown(self.default)

    def of_key(self, value: Any) -> Any:
        """Return the value as the key has it."""
        if isinstance(value, list):
            return [self.of_key(one) for one in value]
        return self.values.get(value, value) if isinstance(self.values, Mapping) else value


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def truth(text: str) -> bool:
    """Return true or false, as Hugging Face's and Graphcore's programs spell them."""
    known = {"yes": True, "true": True, "t": True, "y": True, "1": True}
    known |= {"no": False, "false": False, "f": False, "n": False, "0": False}
    if text.lower() not in known:
        raise ArgumentTypeError(
            f"Truthy value expected: got {text} but expected one of yes/no, true/false, t/f, y/n, 1/0 (case "
            "insensitive)."
        )
    return known[text.lower()]


def true(text: str) -> bool:
    """Return true for the word true, and false for every other word."""
    return text.lower() == "true"


KINDS: Mapping[str, Kind] = {
    "text": str,
    "lower-case text": str.lower,
    "integer": int,
    "number": float,
    SWITCH: SWITCH,
    "boolean": boolean,  # absl's spellings: true, t, 1
    "yes or no": truth,
    "true or other": true,
    "any word is true": bool,
}
"""The kinds by their names in a program's file."""

ABSL_KINDS: Mapping[str, Kind] = {**KINDS, "integer": integer}
"""The kinds of programs whose flags are absl's, which takes hexadecimal numbers too."""
