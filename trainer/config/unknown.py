"""Errors for unknown names: the nearest known one, or the programs that have it."""

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

from bertdata.config.value_check import check_names
from bertdata.errors import MissingInputError, SettingsError
from trainer.config.keys import flag, known_names
from trainer.registry import find


def refuse_name(name: str, where: str) -> None:
    """SettingsError for the unknown name. where: the file, or the hyphens of a flag."""
    known: Collection[str] = known_names()
    if where == "--":
        name, where = flag(name), ""
        known = {"--config", "--help", "--help-all", *map(flag, known)}
    if programs := _programs_with(name):
        theirs = f"{', '.join(programs)} {'has' if len(programs) == 1 else 'have'} it"
        door = f"python -m trainer like {programs[0]} ... runs such a command line"
        raise SettingsError(f"{where}{name} is not a key of this trainer; {theirs}: {door}")
    check_names([name], known, where)


def _programs_with(name: str) -> list[str]:
    """The other programs that have a flag or a key of that name."""
    try:
        programs: list[str] = find("program", "with a flag")(name)
    except SettingsError:  # the extension is not there
        return []
    return programs


def missing_config(path: str, shipped: Collection[str], error: MissingInputError) -> MissingInputError:
    """The error for a configuration that is not there, with the nearest of the shipped ones."""
    nearest = get_close_matches(Path(path).stem, shipped, n=1, cutoff=0.5)
    hint = f"; the nearest configuration of the trainer's own is {nearest[0]}" if nearest else ""
    return MissingInputError(f"{error}{hint}")
