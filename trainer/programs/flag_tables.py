"""Rows of tables of flags that have much in common, and the keys of ours that a table sets."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from trainer.config.settings import DEVICE_OPTIONS, device_properties, properties

Kind = Callable[[str], Any] | str
"""The kind of a flag's values."""


def own_flags(kind: Kind, names: str, **more: Any) -> list[Flag]:
    """Flags that set our key of the same name, also one of devices, and have its meaning."""
    found, ours = list[Flag](), properties() | device_properties()
    for name, default in _named(names, kind):
        key = name.lstrip("-").replace("-", "_")
        meaning = ours[key]["description"].partition(" (default")[0]
        found.append(Flag(name, kind, default, meaning, key=key, **more))
    return found


def idle_flags(meaning: str, kind: Kind, names: str, default: Any = None, **more: Any) -> list[Flag]:
    """Flags without effect here for one reason."""
    named = _named(names, kind, default)
    return [Flag(name, kind, usual, meaning, idle=True, **more) for name, usual in named]


def _named(names: str, kind: Kind, default: Any = None) -> Iterator[tuple[str, Any]]:
    """(name, default) of each word: ``--name``, or ``--name=VALUE`` with a default of its own."""
    for word in names.split():
        name, equals, value = word.partition("=")
        yield name, kind(value) if equals and callable(kind) else default


def rows_of(table: Sequence[Flag], names: str) -> list[Flag]:
    """The rows of another program's table that this one has too."""
    rows = {flag.name: flag for flag in table}
    return [rows[name] for name in names.split()]


def with_rows(table: Sequence[Flag], *rows: Flag) -> list[Flag]:
    """The table with these rows in place of those of the same name, and new ones at its end."""
    return list({flag.name: flag for flag in (*table, *rows)}.values())


def truth(text: str) -> bool:
    """True or false, as Hugging Face's and Graphcore's programs spell them."""
    known = {"yes": True, "true": True, "t": True, "y": True, "1": True}
    known |= {"no": False, "false": False, "f": False, "n": False, "0": False}
    if text.lower() not in known:
        raise ArgumentTypeError(
            f"Truthy value expected: got {text} but expected one of yes/no, true/false, t/f, y/n, 1/0 (case "
            "insensitive)."
        )
    return known[text.lower()]


def phase_keys(given: Given, phase: int = 0) -> dict[str, Any]:
    """The keys that flags set as they are, in a phase counted from 0. Values that are None are left out."""
    keys, options = dict[str, Any](), device_properties()
    for flag in given.table:
        value = given[flag.name]
        if flag.key is None or value is None:
            continue
        value = flag.of_key(value)
        if isinstance(value, list) and (flag.count == 2 or len(value) == 1):
            value = value[phase]
        place = keys.setdefault(DEVICE_OPTIONS, {}) if flag.key in options else keys
        place[flag.key] = value
    return keys
