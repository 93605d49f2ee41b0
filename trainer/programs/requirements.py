"""Checks that other programs make on their command lines, with errors worded like the errors of the other
programs.
"""

from collections.abc import Mapping

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError


def describe_work(flags: ParsedCommandLine) -> str:
    """Return which of --do_train, --do_eval and --do_predict are set, as text, for example "train, eval"."""
    return ", ".join(verb for verb in ("train", "eval", "predict") if flags.values.get(f"do_{verb}"))


def require_flags(flags: ParsedCommandLine, *names: str) -> None:
    """Raise UsageError, worded as by absl (the programs' flag parser), for the first of these flags without a
    value.
    """
    for name in names:
        if flags[name] is None:
            raise UsageError(f"flag --{name}=None: Flag --{name} must have a value other than None.")


def require_any_switch(flags: ParsedCommandLine, *switches: str) -> None:
    """Raise UsageError, worded as in the programs, if none of these switches is set.

    switches: names of flags such as do_train and do_predict.
    """
    if not any(flags[name] for name in switches):
        *others, last = (f"`{name}`" for name in switches)
        raise UsageError(f"At least one of {', '.join(others)} or {last} must be True.")


def require_files(flags: ParsedCommandLine, files: Mapping[str, str]) -> None:
    """Raise UsageError, worded as in the programs, for a switch that is set without the file that it needs.

    files: for each switch, the name of the flag that has its file.
    """
    for switch, name in files.items():
        if flags[switch] and not flags[name]:
            raise UsageError(f"If `{switch}` is True, then `{name}` must be specified.")
