"""``bertdata COMMAND ...``: finds the command's module, runs it, turns errors into exit statuses."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType

from bertdata import __version__, _native
from bertdata.errors import BertDataError, UsageError

COMMANDS = {
    "extract": "a Wikipedia dump to extracted articles",
    "segment": "extracted articles to parts with one sentence a line",
    "create": "sentence parts to shards, manifest and MD5SUMS",
    "create-pretraining-data": "the same with the flags of MLPerf's script, for its users",
    "pick-eval": "pick evenly spaced examples for evaluation",
    "md5": "md5 of files, or of their content whatever tool wrote them",
    "verify-md5": "check a dataset, an md5sum file or a published table",
    "show": "one example as a person reads it",
    "stats": "lengths, padding, masks, next sentences and balance of a dataset, with a picture",
    "convert": "a shard from one container to another",
    "train-vocab": "a WordPiece vocabulary of your own",
    "fetch": "vocabularies and Punkt tables, by name",
    "recipes": "the named recipes and their settings",
}
SLOW_WITHOUT_KERNELS = {
    "segment",
    "create",
    "create-pretraining-data",
    "pick-eval",
    "md5",
    "verify-md5",
    "stats",
    "convert",
}

USAGE = """\
Example:
  bertdata create part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata verify-md5 shards

Prepares BERT pre-training data: the same examples as the original programs, to the bit.

usage: bertdata COMMAND ...    (bertdata COMMAND --help explains one)

"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0 done or sound, 1 data at fault, 2 wrong usage, 130 interrupted."""
    try:
        with _sigterm_interrupts():
            status = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except BertDataError as error:
        _report(f"error: {error}")
        return error.exit_status
    except KeyboardInterrupt as stop:
        _report("interrupted; what is finished is kept, run the same command to go on")
        return 143 if isinstance(stop, _Terminated) else 130
    except MemoryError:
        _report("error: out of memory; use smaller parts or fewer workers")
        return 1
    except BrokenPipeError:
        _forget_output()  # the reader of our output went away; there is nobody to tell
        return 1
    except OSError as error:
        if error.filename is None:
            _forget_output()
        _report(f"error: {error.filename or 'standard output'}: {error.strerror or error}")
        return 1


def _report(line: str) -> None:
    print(f"bertdata: {line}", file=sys.stderr)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE + "".join(f"  {name:<25}{summary}\n" for name, summary in COMMANDS.items()), end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"bertdata {__version__} (engine: {_native.default_engine()})")
        return 0
    name, arguments = words[0], words[1:]
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    if name in SLOW_WITHOUT_KERNELS and not _native.available() and not _asks_for_help(arguments):
        _report("the native engine is not built here; running the slow Python engine")
    status: int = import_module(f"bertdata.cli.{name.replace('-', '_')}").run(arguments)
    return status


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(COMMANDS)}"
    return f"{name!r} is no command; {hint}"


def _asks_for_help(arguments: list[str]) -> bool:
    return "-h" in arguments or "--help" in arguments


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which schedulers send, ends a command as Ctrl-C does."""


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _forget_output() -> None:
    """Let the interpreter not try again, at its end, to write what could not be written."""
    with suppress(OSError, ValueError):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
