"""``bertdata COMMAND ...``: finds the command's module, runs it, turns errors into exit statuses."""

import sys
from importlib import import_module

from bertdata import __version__, _native
from bertdata.errors import BertDataError

COMMANDS = {
    "create": "sentence parts to shards, manifest and MD5SUMS",
    "create-pretraining-data": "the same with the flags of MLPerf's script, for its users",
    "pick-eval": "pick evenly spaced examples for evaluation",
    "md5": "md5 of files, or of their content whatever tool wrote them",
    "verify-md5": "check a dataset, an md5sum file or a published table",
    "show": "one example as a person reads it",
    "convert": "a shard from one container to another",
    "train-vocab": "a WordPiece vocabulary of your own",
    "recipes": "the named recipes and their settings",
}
SLOW_WITHOUT_KERNELS = {"create", "create-pretraining-data", "pick-eval", "md5", "verify-md5", "convert"}

USAGE = """\
Example:
  bertdata create part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata verify-md5 shards

Prepares BERT pre-training data: the same examples as the original programs, to the bit.

usage: bertdata COMMAND ...    (bertdata COMMAND --help explains one)

"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status: 0 done or sound, 1 data at fault, 2 wrong usage, 130 interrupted."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE + "".join(f"  {name:<25}{summary}\n" for name, summary in COMMANDS.items()), end="")
        return 0 if words else 2
    if words[0] == "--version":
        print(f"bertdata {__version__} (engine: {_native.default_engine()})")
        return 0
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        print(f"bertdata: error: {_unknown(name)}", file=sys.stderr)
        return 2
    return run_guarded(name, rest)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(COMMANDS)}"
    return f"{name!r} is no command; {hint}"


def run_guarded(name: str, arguments: list[str]) -> int:
    """The command's exit status, whatever it raises on purpose."""
    try:
        if name in SLOW_WITHOUT_KERNELS and not _native.available() and not _asks_for_help(arguments):
            print(
                "bertdata: the native engine is not built here; running the slow Python engine", file=sys.stderr
            )
        module = import_module(f"bertdata.cli.{name.replace('-', '_')}")
        status: int = module.run(arguments)
        return status
    except BertDataError as error:
        print(f"bertdata: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("bertdata: interrupted; what is finished is kept, run the same command to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away; there is nobody to tell
        return 1
    except MemoryError:
        print("bertdata: error: out of memory; use smaller parts or fewer workers", file=sys.stderr)
        return 1


def _asks_for_help(arguments: list[str]) -> bool:
    return "-h" in arguments or "--help" in arguments
