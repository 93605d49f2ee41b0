"""Description of a flag of another project's program, and the types of its values."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.absl_flags import parse_absl_boolean, parse_absl_integer

SWITCH = "switch"
"""Type of a flag that takes no value. The flag is true if it is on the command line."""

Kind = Callable[[str], Any] | str
"""Type of a flag's value: a function that converts its text, or SWITCH for a flag without a value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A flag of another program, as the program's TOML file describes it.

    names: all spellings, separated by blanks. The last spelling is the name of the flag's value.
    kind: type of the value.
    default: the default value in the program. With a ``count``, it is the default for all values together.
    meaning: a line for the help, which includes the unit.
    key: the configuration key of bertdata or the trainer that gets the value. None if there is no such key.
    values: the accepted values. A mapping also says which value the key gets for each accepted value.
    count: number of values that the flag takes. "+" means one or more. "?" means at most one, and without a
        value the flag is true.
    idle: True if the flag has no effect here. ``meaning`` then says why.
    warning: text that is printed if the flag is on the command line.
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
        """Name of the flag's value: the last spelling, with underscores instead of hyphens."""
        return self.spellings[-1].lstrip("-").replace("-", "_")

    @property
    def is_boolean(self) -> bool:
        """True if the flag is a switch or has absl's boolean type."""
        return self.kind is parse_absl_boolean or self.kind == SWITCH

    @property
    def effect(self) -> str:
        """Line for the help that says what the flag does, or why it has no effect here."""
        if not self.idle:
            return self.meaning
        return f"without effect here{': ' if self.meaning else ''}{self.meaning}"

    @property
    def shown_default(self) -> str | None:
        """The default value as the help and the documentation show it.

        It is None if the flag is a switch or has no default.
        """
        return None if self.default is None or self.kind == SWITCH else _format_value(self.default)

    def convert_to_key_value(self, value: Any) -> Any:
        """Return the value of the configuration key that corresponds to a value of the flag."""
        if isinstance(value, list):
            return [self.convert_to_key_value(one) for one in value]
        return self.values.get(value, value) if isinstance(self.values, Mapping) else value


def _format_value(value: Any) -> str:
    """Return a value as text, with lower-case true and false."""
    if isinstance(value, tuple | list):
        return " ".join(map(_format_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_boolean_word(text: str) -> bool:
    """Convert a text to a boolean, in the spellings that Hugging Face's and Graphcore's programs accept."""
    known = {"yes": True, "true": True, "t": True, "y": True, "1": True}
    known |= {"no": False, "false": False, "f": False, "n": False, "0": False}
    if text.lower() not in known:
        raise ArgumentTypeError(
            f"Truthy value expected: got {text} but expected one of yes/no, true/false, t/f, y/n, 1/0 (case "
            "insensitive)."
        )
    return known[text.lower()]


def parse_true_word(text: str) -> bool:
    """Return True for the word "true" in any case, and False for every other word."""
    return text.lower() == "true"


KINDS: Mapping[str, Kind] = {
    "text": str,
    "lower-case text": str.lower,
    "integer": int,
    "number": float,
    SWITCH: SWITCH,
    "boolean": parse_absl_boolean,  # absl's spellings: true, t, 1
    "yes or no": parse_boolean_word,
    "true or other": parse_true_word,
    "any word is true": bool,
}
"""Types of flags, by the name that a program's TOML file uses."""

ABSL_KINDS: Mapping[str, Kind] = {**KINDS, "integer": parse_absl_integer}
"""Types of flags of programs that use absl, by name. Their integers may also be hexadecimal."""
