"""The additional spellings that Hugging Face's HfArgumentParser gives to the flags of a program."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata.cli.common.programs.flag import SWITCH, Flag, parse_boolean_word

_OPPOSITE = "no_"


def add_hugging_face_spellings(table: Sequence[Flag]) -> list[Flag]:
    """Return the flags with the additional spellings that HfArgumentParser accepts.

    Each flag can also be written with hyphens. A boolean flag may have no value. A boolean flag that is true
    by default can be switched off by ``--no_NAME``.
    """
    found = []
    for flag in table:
        names = " ".join(dict.fromkeys([flag.names, flag.names.replace("_", "-")]))
        stands_alone = flag.kind is parse_boolean_word and flag.default is not None
        found.append(replace(flag, names=names, count="?" if stands_alone else flag.count))
        if flag.kind is parse_boolean_word and flag.default is True:
            no = f"--{_OPPOSITE}{flag.name} --no-{flag.name.replace('_', '-')}"
            found.append(Flag(names=no, kind=SWITCH, meaning=f"the opposite of {flag.name}", idle=flag.idle))
    return found


def apply_negated_flags(explicit: Mapping[str, Any], table: Sequence[Flag]) -> dict[str, Any]:
    """Return the values of the flags, where a flag is False if its ``--no_NAME`` spelling was given.

    explicit: values of the flags on the command line, by name.
    table: the program's flags.
    """
    names = {flag.name for flag in table}
    opposites = {name.removeprefix(_OPPOSITE) for name in explicit if name.startswith(_OPPOSITE)}
    return {**explicit, **dict.fromkeys(opposites & names, False)}
