"""Search for the source of each configuration value that was translated from another program's command line.

A source is a flag, an environment variable, or the program itself with its defaults.
"""

from collections.abc import Mapping
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.program import Program
from bertdata.errors import BertDataError
from trainer.programs.choice import translate_command_line
from trainer.programs.translated_command import TranslatedCommand

_NOT_THERE = object()


def find_sources_by_phase(
    program: Program, flags: ParsedCommandLine, translated: TranslatedCommand
) -> list[dict[str, str]]:
    """Return the source of each configuration key, for each phase.

    A source is the name of a flag or an environment variable, or the name of the program. A flag counts as
    the source of every key whose value would be another one without the flag.
    """
    found: list[dict[str, list[str]]] = [{key: [] for key in keys} for keys in translated.phases]
    # Translate the command line again without each flag in turn, and compare the results. This also finds the
    # sources of keys that are computed from several flags, such as accumulation.
    for flag in (*flags.variables, *flags.table):
        if flag.name not in flags:
            continue
        spelled = flag.spellings[-1]
        without = [] if flag.required else _translate_without_flag(program, flags, flag.name)
        for number, keys in enumerate(translated.phases):
            others = without[number] if len(without) == len(translated.phases) else keys
            for key, value in keys.items():
                if flag.key == key or others.get(key, _NOT_THERE) != value:
                    found[number][key].append(spelled)
    return [
        {key: " and ".join(names) or program.name for key, names in of_phase.items()} for of_phase in found
    ]


def _translate_without_flag(program: Program, flags: ParsedCommandLine, name: str) -> list[Mapping[str, Any]]:
    """Return the phases that the command line would have without this flag, or [] if the program needs the
    flag.
    """
    try:
        return list(translate_command_line(program, flags.without(name)).phases)
    except (BertDataError, ArithmeticError):
        return []
