"""The command line that started a run, for the run's log and its report."""

import shlex
import sys
from pathlib import PurePath

_SCRIPT = "bertdata-train"
_MODULES = ("__main__.py", "by_path.py")  # what ``python -m trainer`` runs, and what a worker of --dist runs


def find_command_line() -> str | None:
    """Return the command line of this process as a user can type it again.

    Return None if other Python code started the run. ``trainer.functions`` then gives the call.
    """
    program = PurePath(sys.argv[0])
    if program.stem == _SCRIPT:
        return shlex.join([_SCRIPT, *sys.argv[1:]])
    if program.parent.name == "trainer" and program.name in _MODULES:
        return shlex.join(["python", "-m", "trainer", *sys.argv[1:]])
    return None
