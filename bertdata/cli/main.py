"""``bertdata COMMAND ...``: finds the command's module, runs it, turns errors into exit statuses."""

import gc
import sys
from importlib import import_module
from typing import Any

from bertdata import __version__, _native
from bertdata.cli.common.dispatch import choose_command, end
from bertdata.cli.common.interrupts import Interrupts
from bertdata.io.home import expand_words
from bertdata.io.terminal import say, say_error

COMMANDS = {
    "extract": "a Wikipedia dump to extracted articles",
    "segment": "extracted articles to parts with one sentence a line",
    "create": "sentence parts to shards, manifest and MD5SUMS",
    "pack": "examples of a dataset to packed rows",
    "create-pretraining-data": "the same with the command line of MLPerf's script, for its users",
    "like": "the command line of another program, with the meaning that it has there",
    "pick-eval": "pick evenly spaced examples for evaluation",
    "md5": "md5 of files, or of their content whatever tool wrote them",
    "verify-md5": "check a dataset, an md5sum file or a published table",
    "show": "one example as a person reads it",
    "stats": "a dataset in numbers: lengths, padding, masks, balance; with a picture",
    "report": "a page on a dataset, or on several side by side",
    "convert": "a shard from one container to another",
    "train-vocab": "a WordPiece vocabulary of your own",
    "fetch": "vocabularies and Punkt tables, by name",
    "recipes": "the named recipes and their settings",
}
SLOW_WITHOUT_KERNELS = {
    "extract",
    "segment",
    "create",
    "create-pretraining-data",
    "like",
    "pack",
    "pick-eval",
    "md5",
    "verify-md5",
    "stats",
    "report",
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
    """Run one command. The exit status: 0 done or sound, 1 data at fault, 2 wrong usage, 130 interrupted."""
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    interrupted = "interrupted; what is finished is kept, run the same command to go on"
    return end("bertdata", lambda: _run(words), interrupted=interrupted)


def _run(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        say(f"bertdata {__version__} (engine: {_native.default_engine()})")
        return 0
    name, arguments = choose_command(words, USAGE, COMMANDS), words[1:]
    if name is None:
        return 0 if words else 2
    if name in SLOW_WITHOUT_KERNELS and not _native.available() and not _asks_for_help(arguments):
        say_error("bertdata: the native engine is not built here; running the slow Python engine")
    with Interrupts():
        status: int = _load(name).run(arguments)
    return status


def _load(name: str) -> Any:
    """The command's module. Nothing that is loaded is garbage, which takes time to find out."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"bertdata.cli.{name.replace('-', '_')}")
    finally:
        if collects:
            gc.enable()


def _asks_for_help(arguments: list[str]) -> bool:
    return "-h" in arguments or "--help" in arguments
