"""Translate the command lines of MLPerf's checkpoint_add_gradacc.py to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import Given
from trainer.programs.meaning import Meaning
from trainer.programs.requirements import require_flags

_ADDED = "a zero variable NAME/GradientAccumulator beside every variable (moments and counters too)"


def resolve(given: Given) -> Meaning:
    """Return the conversion. Both file flags are required here, since the program's defaults are paths on its
    authors' machine.
    """
    require_flags(given, "old", "new")
    given.warn("this trainer accumulates gradients without such slots, and reads the checkpoint as it is")
    return Meaning(
        what=f"{given['old']} with slots for accumulated gradients",
        convert={
            "source": given["old"],
            "target": given["new"],
            "to": "tf1",
            "added": _ADDED,
            "needed_by_the_project": False,
        },
    )
