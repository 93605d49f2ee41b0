"""``bertdata like PROGRAM ARGUMENTS ... [-- FLAGS]``: another program's command line, with its meaning."""

import argparse
import json
from difflib import get_close_matches
from typing import Any

from bertdata.cli.common.door_words import PRINT_CONFIG, divide, take_print_config
from bertdata.cli.common.parser import Parser, add_engine, add_overwrite
from bertdata.cli.common.program_flags import SWITCH, Flag, Given, ProgramFlags
from bertdata.cli.common.script_examples import FileNames, ScriptSettings, make_files, probability, warn
from bertdata.errors import UsageError
from bertdata.io.terminal import say_text

DOOR = "bertdata like"
CREATE = "graphcore/create_pretraining_data.py"
SOURCE = "graphcore/examples 553b90b5, applications/tensorflow/bert/Datasets"
REMASKS = "2.6"
"""The version from which on examples are rearranged only where ``--remask`` asks for it."""

EXAMPLE = f"""\
  {DOOR} {CREATE} \\
      --input-file Datasets/sample.txt --output-file Datasets/sample.tfrecord --vocab-file data/vocab.txt \\
      --do-lower-case --sequence-length 128 --mask-tokens 20 --duplication-factor 5"""

SUMMARY = f"""\
Runs the command line of another program, as its authors print it, with the meaning that it has there.
Flags of bertdata may follow after --; {PRINT_CONFIG} prints the settings and does nothing else.
Programs, each with a --help of its own:
  {CREATE}  Graphcore: text to examples with masked positions first (@{REMASKS})"""

_TABLE = [
    Flag("--input-file", required=True, meaning="text files or patterns, by commas"),
    Flag("--output-file", required=True, meaning="TFRecord files to write, by commas"),
    Flag("--vocab-file", required=True, meaning="WordPiece vocabulary, a file or a name"),
    Flag("--do-lower-case", SWITCH, meaning="lower-case the text"),
    Flag("--sequence-length", int, 128, "ids of an example"),
    Flag("--mask-tokens", int, 20, "largest number of masked positions in an example"),
    Flag("--seed", int, 1984, "seed of the random choices"),
    Flag("--duplication-factor", int, 6, "examples made from the same text, each with masks of its own"),
    Flag("--mlm-prob", float, 0.15, "share of an example's ids that are masked"),
    Flag("--short-seq-prob", float, 0.1, "share of shorter examples"),
    Flag("--max-samples", int, -1, idle=True, meaning="the script reads it and writes all examples"),
    Flag("--pad-position-value", int, 384, "position in empty slots of rearranged examples"),
]
_ALWAYS = Flag("--remask", SWITCH, idle=True, meaning="this version always writes masked positions first")
_ASKED = Flag("--remask", SWITCH, meaning="write masked positions first")
_VERSIONS = {"": [*_TABLE, _ALWAYS], REMASKS: [*_TABLE, _ASKED]}


def make_parser() -> Parser:
    parser = Parser(DOOR, EXAMPLE, SUMMARY)
    parser.add_argument("program", metavar="PROGRAM[@VERSION]", help="another program, as listed above")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments; then --, and flags of ours"
    )
    return parser


def run(arguments: list[str]) -> int:
    """Run the program's command line, or print what it means."""
    words, printing = take_print_config(arguments)
    args = make_parser().parse_args(words)
    version = _find_version(args.program)
    theirs, ours = divide(args.arguments)
    given = _flags(version).read(theirs, version=version)
    flags = _our_flags(ours)
    settings, names = settings_of(given), _names(given)
    if printing:
        found = {"program": args.program, "create": _described(settings, names)}
        say_text(json.dumps(found, indent=1) + "\n")
        return 0
    if "max_samples" in given:
        warn(["--max-samples: the script ignores it; all examples are written"])
    make_files(names, settings, flags.engine, overwrite=flags.overwrite)
    return 0


def settings_of(given: Given) -> ScriptSettings:
    """The settings of the examples. SettingsError for a value that no examples can be made with."""
    return ScriptSettings(
        dialect="graphcore",
        max_seq_length=given["sequence_length"],
        max_predictions_per_seq=max(given["mask_tokens"], 0),
        dupe_factor=given["duplication_factor"],
        random_seed=given["seed"],
        masked_lm_prob=probability(given["mlm_prob"]),
        short_seq_prob=probability(given["short_seq_prob"]),
        lower_case=given["do_lower_case"],
        remask=given["remask"] if given.version == REMASKS else True,
        pad_position=given["pad_position_value"],
    )


def _find_version(name: str) -> str:
    """The version behind the program's name, "" for the default. UsageError names the nearest program."""
    program, _, version = name.partition("@")
    if program != CREATE:
        is_near = program.rpartition("/")[2] == CREATE.rpartition("/")[2]
        near = [CREATE] if is_near else get_close_matches(program, [CREATE], n=1)
        elsewhere = "programs that train: python -m trainer like"
        hint = f"did you mean {near[0]}?" if near else f"known is {CREATE}; {elsewhere}"
        raise UsageError(f"{program!r} is no known program; {hint}")
    if version not in _VERSIONS:
        raise UsageError(f"{name}: no such version; known besides the default is @{REMASKS}")
    return version


def _flags(version: str) -> ProgramFlags:
    at = f"@{version}" if version else ""
    return ProgramFlags(
        prog=f"{DOOR} {CREATE}{at}",
        example=EXAMPLE,
        summary=f"The command line of Graphcore's create_pretraining_data.py ({SOURCE}),\n"
        "with the meaning that it has there.",
        table=_VERSIONS[version],
        ours="bertdata",
    )


def _our_flags(words: list[str]) -> argparse.Namespace:
    """Read the flags of ours."""
    parser = Parser(f"{DOOR} {CREATE} ... --", EXAMPLE, "Flags of bertdata behind another program's.")
    add_overwrite(parser)
    add_engine(parser)
    return parser.parse_args(words)


def _names(given: Given) -> FileNames:
    return FileNames(
        given["input_file"],
        given["output_file"],
        given["vocab_file"],
        flags=("--input-file", "--output-file"),
        casing_remedies=("leave out --do-lower-case", "give --do-lower-case"),
    )


def _described(settings: ScriptSettings, names: FileNames) -> dict[str, Any]:
    """The settings under the names of ``bertdata create-pretraining-data`` and of recipes."""
    return {
        "input_file": names.inputs,
        "output_file": names.outputs,
        "vocab_file": names.vocabulary,
        "max_seq_length": settings.max_seq_length,
        "max_predictions_per_seq": settings.max_predictions_per_seq,
        "masked_lm_prob": settings.masked_lm_prob,
        "random_seed": settings.random_seed,
        "dupe_factor": settings.dupe_factor,
        "short_seq_prob": settings.short_seq_prob,
        "lower_case": settings.lower_case,
        "format": "tfrecord",
        "dialect": settings.dialect,
        "remask": settings.remask,
        "pad_position_value": settings.pad_position,
        "max_samples": "all",
    }
