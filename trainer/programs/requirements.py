"""What programs require of a command line, with errors in the programs' words."""

from collections.abc import Mapping

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError


def describe_work(flags: ParsedCommandLine) -> str:
    """Return what the flags --do_train, --do_eval and --do_predict ask for, as text: "train, eval"."""
    return ", ".join(verb for verb in ("train", "eval", "predict") if flags.values.get(f"do_{verb}"))


def require_flags(flags: ParsedCommandLine, *names: str) -> None:
    """Raise UsageError, in absl's words, for the first of these flags without a value."""
    for name in names:
        if flags[name] is None:
            raise UsageError(f"flag --{name}=None: Flag --{name} must have a value other than None.")


def require_work(flags: ParsedCommandLine, *switches: str) -> None:
    """Raise UsageError, in the programs' words, if none of these switches is true."""
    if not any(flags[name] for name in switches):
        *others, last = (f"`{name}`" for name in switches)
        raise UsageError(f"At least one of {', '.join(others)} or {last} must be True.")


def require_files(flags: ParsedCommandLine, files: Mapping[str, str]) -> None:
    """Raise UsageError, in the programs' words, for a true switch whose file is not named.

    files: flag of the file for each switch.
    """
    for switch, name in files.items():
        if flags[switch] and not flags[name]:
            raise UsageError(f"If `{switch}` is True, then `{name}` must be specified.")
