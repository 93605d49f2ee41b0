"""The hint for a flag or a key that the trainer lacks and other programs have."""

from bertdata.errors import SettingsError
from trainer.config.flags import UnknownKeyError
from trainer.programs.choice import programs_with


def with_programs(error: UnknownKeyError) -> SettingsError:
    """Return the error that names the programs which have the name, or the same one where none has it."""
    programs = programs_with(error.name)
    if not programs:
        return error
    verb = "has" if len(programs) == 1 else "have"
    door = f"python -m trainer like {programs[0]} ... runs such a command line"
    found = f"{error.where}{error.name} is not a key of this trainer; {', '.join(programs)} {verb} it"
    return SettingsError(f"{found}: {door}")
