"""A flag of another project's program, and the types of its values."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.absl_flags import parse_absl_boolean, parse_absl_integer

SWITCH = "switch"
"""Type of a flag without a value, which is true if it is on the command line."""

Kind = Callable[[str], Any] | str
"""Type of a flag's value: SWITCH, or a function that converts the text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A flag of another program, as the program's file describes it.

    names: all spellings, separated by blanks. The last spelling names the value.
    default: the program's default. With a ``count``, the default of all values.
    meaning: a help line, with the unit.
    key: the key of our configuration that is set to the value. None means no key.
    values: the accepted values. If it is a mapping, it maps each accepted value to the key's value.
    count: number of values. "+" means one or more, "?" at most one, without which the flag is true.
    idle: True if the flag has no effect here. ``meaning`` then says why.
    warning: printed if the flag is on the command line.
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
        """All spellings of the flag."""
        return self.names.split()

    @property
    def name(self) -> str:
        """The name of the value: the last spelling, with underscores."""
        return self.spellings[-1].lstrip("-").replace("-", "_")

    @property
    def is_boolean(self) -> bool:
        """True for a switch and for a flag of absl's boolean type."""
        return self.kind is parse_absl_boolean or self.kind == SWITCH

    @property
    def effect(self) -> str:
        """The flag's meaning as a help line.

        For a flag without effect, the line says that it has none, and why.
        """
        if not self.idle:
            return self.meaning
        return f"without effect here{': ' if self.meaning else ''}{self.meaning}"

    @property
    def shown_default(self) -> str | None:
        """The default value as help and documentation show it.

        It is None for a flag without a default and for a switch.
        """
        return None if self.default is None or self.kind == SWITCH else _format_value(self.default)

    def of_key(self, value: Any) -> Any:
        """Return the value of the configuration key for this value of the flag."""
        if isinstance(value, list):
            return [self.of_key(one) for one in value]
        return self.values.get(value, value) if isinstance(self.values, Mapping) else value


def _format_value(value: Any) -> str:
    """Return a value as text, with lower-case true and false."""
    if isinstance(value, tuple | list):
        return " ".join(map(_format_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_truth(text: str) -> bool:
    """Return the truth value in the spellings of Hugging Face's and Graphcore's programs."""
    known = {"yes": True, "true": True, "t": True, "y": True, "1": True}
    known |= {"no": False, "false": False, "f": False, "n": False, "0": False}
    if text.lower() not in known:
        raise ArgumentTypeError(
            f"Truthy value expected: got {text} but expected one of yes/no, true/false, t/f, y/n, 1/0 (case "
            "insensitive)."
        )
    return known[text.lower()]


def parse_true(text: str) -> bool:
    """Return True for the word "true" in any case, and False for every other word."""
    return text.lower() == "true"


KINDS: Mapping[str, Kind] = {
    "text": str,
    "lower-case text": str.lower,
    "integer": int,
    "number": float,
    SWITCH: SWITCH,
    "boolean": parse_absl_boolean,  # absl's spellings: true, t, 1
    "yes or no": parse_truth,
    "true or other": parse_true,
    "any word is true": bool,
}
"""Types by the names that a program's file uses."""

ABSL_KINDS: Mapping[str, Kind] = {**KINDS, "integer": parse_absl_integer}
"""Types for programs that use absl, whose integers may also be hexadecimal."""
