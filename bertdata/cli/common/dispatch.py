"""Functions that find the command that the user typed, run it, and turn errors into an exit status and a
line.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from bertdata.errors import BertDataError, SettingsError, SettingsFileError, UsageError
from bertdata.io.lasting_output import protect_output
from bertdata.io.terminal import say_error, say_text


def choose_command(words: list[str], usage: str, commands: Mapping[str, str]) -> str | None:
    """Return the command that the first word of the command line names.

    If no command is named, print the help and return None.

    usage: text that the help shows above the list of commands.
    commands: a description of each command, by name.

    Raises UsageError for an unknown command, which suggests the most similar command.
    """
    if not words or words[0] in ("-h", "--help", "help"):
        width = max(map(len, commands)) + 2
        say_text(usage + "".join(f"  {name:<{width}}{summary}\n" for name, summary in commands.items()))
        return None
    if words[0] not in commands:
        from difflib import get_close_matches  # slow to import

        near = get_close_matches(words[0], commands, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(commands)}"
        raise UsageError(f"{words[0]!r} is no command; {hint}")
    return words[0]


def run_to_exit_status(
    program: str, work: Callable[[], int], *, interrupted: str, place: str = "", has_parser: bool = True
) -> int:
    """Run a command and return its exit status. An error is printed as a single line.

    An error with an empty message is not printed, because it was printed before. If standard error is closed,
    the command still runs to its end, because its results go to standard output and to files.

    program: name of the program, for error messages.
    work: function that runs the command.
    interrupted: message to print after Ctrl-C, unless the KeyboardInterrupt has a message.
    place: text in front of each error message.
    has_parser: True if the command uses a Parser. Error messages then name settings by their flags, such as
        ``--bin-size`` for ``bin_size``.
    """

    with protect_output("stderr"):
        return _run_to_exit_status(program, work, interrupted, place, has_parser)


def _run_to_exit_status(
    program: str, work: Callable[[], int], interrupted: str, place: str, has_parser: bool
) -> int:
    def print_error(message: str, status: int) -> int:
        say_error(f"{program}: {message}")
        return status

    try:
        status = work()
        sys.stdout.flush()
        return status
    except BertDataError as error:
        message = str(error)
        if has_parser and isinstance(error, SettingsError) and not isinstance(error, SettingsFileError):
            from bertdata.cli.common.parser import (
                name_settings_by_flag,  # imported only for errors, to start faster
            )

            message = name_settings_by_flag(message)
        return print_error(f"error: {place}{message}", error.exit_status) if message else error.exit_status
    except KeyboardInterrupt as stop:
        return print_error(str(stop) or interrupted, getattr(stop, "exit_status", 130))
    except MemoryError:
        return print_error(f"error: {place}out of memory; use smaller parts or fewer workers", 1)
    except BrokenPipeError:
        # the program that reads standard output has ended, so an error message would help nobody
        _discard_output()
        return 1
    except OSError as error:
        if error.filename is None:
            _discard_output()
        return print_error(
            f"error: {place}{error.filename or 'standard output'}: {error.strerror or error}", 1
        )


def _discard_output() -> None:
    """Point standard output at /dev/null, so that Python's flush at exit cannot fail on a closed pipe."""
    with suppress(OSError, ValueError):  # standard output may be an object that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
