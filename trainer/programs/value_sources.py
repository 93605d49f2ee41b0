"""Finding where each value of another program's command line came from: a flag, an environment variable, or
the program's defaults.
"""

from collections.abc import Mapping
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.program import Program
from bertdata.errors import BertDataError
from trainer.programs.choice import translate_command_line
from trainer.programs.meaning import TranslatedCommand

_NOT_THERE = object()


def find_sources_by_phase(
    program: Program, flags: ParsedCommandLine, meaning: TranslatedCommand
) -> list[dict[str, str]]:
    """Return the source of each key in each phase: flags, environment variables, or the program itself.

    A flag is a source of every key whose value would differ without it.
    """
    found: list[dict[str, list[str]]] = [{key: [] for key in keys} for keys in meaning.phases]
    # Translate the command line again without each flag in turn, and compare. This finds sources also for
    # keys that a program's function computes from several flags, such as accumulation.
    for flag in (*flags.variables, *flags.table):
        if flag.name not in flags:
            continue
        spelled = flag.spellings[-1]
        without = [] if flag.required else _translate_without_flag(program, flags, flag.name)
        for number, keys in enumerate(meaning.phases):
            others = without[number] if len(without) == len(meaning.phases) else keys
            for key, value in keys.items():
                if flag.key == key or others.get(key, _NOT_THERE) != value:
                    found[number][key].append(spelled)
    return [
        {key: " and ".join(names) or program.name for key, names in of_phase.items()} for of_phase in found
    ]


def _translate_without_flag(program: Program, flags: ParsedCommandLine, name: str) -> list[Mapping[str, Any]]:
    """Return the phases of the command line without this flag. Empty if the program needs the flag."""
    try:
        return list(translate_command_line(program, flags.without(name)).phases)
    except (BertDataError, ArithmeticError):
        return []
