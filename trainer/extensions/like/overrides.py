"""This trainer's flags behind another program's command line, which go before all that it says."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError
from trainer.config.flags import read_flags, read_keys, steps_or_epochs
from trainer.config.phases import of_phase


def override(
    phases: Sequence[Mapping[str, Any]], arguments: Sequence[str], prog: str
) -> list[dict[str, Any]]:
    """The keys of each phase, where the command line's flags win. Of two values each phase has its own."""
    flags = read_flags(arguments, prog)
    if flags.pop("config", None) is not None:
        raise SettingsError(
            f"{prog} --config: another program's command has no file of ours; give its keys as flags"
        )
    numbers = [1 if len(phases) == 1 and keys.get("phase2") else number for number, keys in enumerate(phases)]
    return [
        steps_or_epochs(dict(keys), read_keys(of_phase(flags, number, number)))
        for number, keys in zip(numbers, phases, strict=True)
    ]
