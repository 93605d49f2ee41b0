"""``bertdata COMMAND ...``: run the command's module and turn errors into exit statuses."""

import gc
import sys
from importlib import import_module
from typing import Any

from bertdata import __version__, _native
from bertdata.cli.common.dispatch import choose_command, run_to_exit_status
from bertdata.cli.common.interrupts import Interrupts
from bertdata.cli.common.slow_engine import warn_about_slow_engine
from bertdata.io.home import expand_words
from bertdata.io.terminal import say

COMMANDS = {
    "extract": "extract the articles of a Wikipedia dump",
    "segment": "split articles, plain text or records into parts with one sentence per line",
    "create": "make shards of training examples from any text: parts, JSONL, CSV, Parquet, ...",
    "pack": "pack the examples of a dataset into rows with almost no padding",
    "create-pretraining-data": "run the command line of MLPerf's and Google's create_pretraining_data.py",
    "like": "run the command line of another program that makes examples",
    "pick-eval": "pick evenly spaced examples for evaluation, as MLPerf's script does",
    "md5": "print the md5 of files, or of the examples in them",
    "verify-md5": "check a dataset against its manifest, an md5sum file or a published table",
    "sign": "sign all files of a dataset, a run or an exported model",
    "show": "print single examples in readable form",
    "stats": "print a dataset's statistics: lengths, padding, masks, balance of the shards",
    "lineage": "show every step that led to a dataset, a run or a model",
    "rebuild": "make a dataset, a run or a model again from its sources and compare every md5",
    "report": "write an HTML page about one dataset, or several side by side",
    "convert": "convert a shard to another file format, or a dataset to another program's layout",
    "train-vocab": "train a WordPiece, BPE or Unigram vocabulary on your text",
    "fetch": "download vocabularies, Punkt tables, Wikipedia dumps, SQuAD or MRPC",
    "recipes": "list the recipes, or print the settings of one",
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
  bertdata create corpus/*.jsonl --output shards --vocab vocab.txt
  bertdata create text.jsonl --output shards --tokenizer roberta-base/tokenizer.json --objective mlm
  bertdata create part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata verify-md5 shards

Makes pre-training data for BERT and other encoders from any text: plain text, records (JSONL, CSV,
Parquet, Arrow) or a Wikipedia dump, with a WordPiece, BPE or Unigram tokenizer. A recipe such as mlperf or
nvidia gives exactly the examples that the original program makes, bit for bit.

usage: bertdata COMMAND ...    (bertdata COMMAND --help explains a command)

"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status.

    The status is 0 if the command succeeded or the data are sound, 1 if the data have a fault, 2 for wrong
    usage, and 130 after Ctrl-C.
    """
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    interrupted = "interrupted; what is finished is kept, run the same command to go on"
    return run_to_exit_status("bertdata", lambda: _run(words), interrupted=interrupted)


def _run(words: list[str]) -> int:
    """Print the version or the help, or run the named command."""
    if words[:1] == ["--version"]:
        say(f"bertdata {__version__} (engine: {_native.default_engine()})")
        return 0
    name, arguments = choose_command(words, USAGE, COMMANDS), words[1:]
    if name is None:
        return 0 if words else 2
    if name in SLOW_WITHOUT_KERNELS and not _asks_for_help(arguments):
        warn_about_slow_engine("bertdata")
    with Interrupts():
        status: int = _import_command(name).run(arguments)
    return status


def _import_command(name: str) -> Any:
    """Import the module of a command while the garbage collector is off.

    Importing creates many objects and no garbage, so collecting garbage would only take time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(f"bertdata.cli.{name.replace('-', '_')}")
    finally:
        if collects:
            gc.enable()


def _asks_for_help(arguments: list[str]) -> bool:
    """Return True if the command line asks for help."""
    return "-h" in arguments or "--help" in arguments
