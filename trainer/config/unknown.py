"""Errors for unknown names: the nearest known one, or the programs that have it."""

from collections.abc import Collection

from bertdata.config.value_check import check_names
from bertdata.errors import SettingsError
from trainer.config.settings import flag, known_names
from trainer.plugins import find


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
