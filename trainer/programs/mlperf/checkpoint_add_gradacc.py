"""Translate the command lines of MLPerf's checkpoint_add_gradacc.py to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.requirements import require_flags
from trainer.programs.translated_command import TranslatedCommand

_ADDED = "a zero variable NAME/GradientAccumulator beside every variable (moments and counters too)"


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for a conversion of a checkpoint.

    Both file names are required here, because the program's defaults are paths on its authors' machine.
    """
    require_flags(flags, "old", "new")
    flags.warn("this trainer accumulates gradients without such slots, and reads the checkpoint as it is")
    return TranslatedCommand(
        what=f"{flags['old']} with slots for accumulated gradients",
        convert={
            "source": flags["old"],
            "target": flags["new"],
            "to": "tf1",
            "added": _ADDED,
            "needed_by_the_project": False,
        },
    )
