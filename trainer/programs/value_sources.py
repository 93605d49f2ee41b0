"""Finding where each value of another program's command line came from: a flag, an environment variable, or
the program's defaults.
"""

from collections.abc import Mapping
from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.cli.common.programs.program import Program
from bertdata.errors import BertDataError
from trainer.programs.choice import find_meaning
from trainer.programs.meaning import Meaning

_NOT_THERE = object()


def find_sources_by_phase(program: Program, given: Given, meaning: Meaning) -> list[dict[str, str]]:
    """Return the source of each key in each phase: flags, environment variables, or the program itself.

    A flag is a source of every key whose value would differ without it.
    """
    found: list[dict[str, list[str]]] = [{key: [] for key in keys} for keys in meaning.phases]
    # Translate the command line again without each flag in turn, and compare. This finds sources also for
    # keys that a program's function computes from several flags, such as accumulation.
    for flag in (*given.variables, *given.table):
        if flag.name not in given:
            continue
        spelled = flag.spellings[-1]
        without = [] if flag.required else _resolve_without_flag(program, given, flag.name)
        for number, keys in enumerate(meaning.phases):
            others = without[number] if len(without) == len(meaning.phases) else keys
            for key, value in keys.items():
                if flag.key == key or others.get(key, _NOT_THERE) != value:
                    found[number][key].append(spelled)
    return [
        {key: " and ".join(names) or program.name for key, names in of_phase.items()} for of_phase in found
    ]


def _resolve_without_flag(program: Program, given: Given, name: str) -> list[Mapping[str, Any]]:
    """Return the phases of the command line without this flag. Empty if the program needs the flag."""
    try:
        return list(find_meaning(program, given.without(name)).phases)
    except (BertDataError, ArithmeticError):
        return []
