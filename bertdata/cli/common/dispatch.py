"""Choosing a command, and ending it: exit status and error line."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from bertdata.errors import BertDataError, SettingsError, SettingsFileError, UsageError
from bertdata.io.lasting_output import lasting_output
from bertdata.io.terminal import say_error, say_text


def choose_command(words: list[str], usage: str, commands: Mapping[str, str]) -> str | None:
    """The command that the words begin with. None where they ask for help, which is printed.

    commands: what each does. UsageError names the nearest.
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


def end(
    program: str, work: Callable[[], int], *, interrupted: str, place: str = "", has_parser: bool = True
) -> int:
    """The exit status of the work. An error is told in one line, unless it has no message.

    The work goes on where nobody reads standard error any more; standard output is what a command is for.
    interrupted: what to say after Ctrl-C; place: goes before each error; has_parser: settings are flags of
    the Parser that the work uses, and errors name them so.
    """

    with lasting_output("stderr"):
        return _end(program, work, interrupted, place, has_parser)


def _end(program: str, work: Callable[[], int], interrupted: str, place: str, has_parser: bool) -> int:
    def report(message: str, status: int) -> int:
        say_error(f"{program}: {message}")
        return status

    try:
        status = work()
        sys.stdout.flush()
        return status
    except BertDataError as error:
        message = str(error)
        if has_parser and isinstance(error, SettingsError) and not isinstance(error, SettingsFileError):
            from bertdata.cli.common.parser import with_flags  # needed for errors alone

            message = with_flags(message)
        return report(f"error: {place}{message}", error.exit_status) if message else error.exit_status
    except KeyboardInterrupt as stop:
        return report(interrupted, getattr(stop, "exit_status", 130))
    except MemoryError:
        return report(f"error: {place}out of memory; use smaller parts or fewer workers", 1)
    except BrokenPipeError:
        _forget_output()  # the reader of our output went away; there is nobody to tell
        return 1
    except OSError as error:
        if error.filename is None:
            _forget_output()
        return report(f"error: {place}{error.filename or 'standard output'}: {error.strerror or error}", 1)


def _forget_output() -> None:
    """Point stdout at /dev/null so that the final flush cannot fail."""
    with suppress(OSError, ValueError):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
