"""``bertdata create-pretraining-data``: a drop-in for MLPerf's script of that name."""

import argparse
from collections.abc import Callable
from typing import Any

from bertdata.cli.common.absl_flags import boolean, integer, read_command_line
from bertdata.cli.common.parser import Parser, add_engine, add_overwrite
from bertdata.cli.common.script_examples import FileNames, ScriptSettings, make_files, probability, warn
from bertdata.config.dialects import DIALECTS

EXAMPLE = """\
  bertdata create-pretraining-data --input_file=part-00000-of-00500 \\
      --output_file=part-00000.tfrecord --vocab_file=vocab.txt --max_seq_length=512 \\
      --max_predictions_per_seq=76 --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=10"""

SUMMARY = """\
All inputs together (patterns and commas allowed) become examples, dealt in turn to the outputs.
Flags are read as the scripts of MLPerf and Google read theirs, with one dash or two, --name value,
--noname and --flagfile; TFRecord files that exist are overwritten. Warnings name what the scripts ignore
without a word: unknown flags, other words, patterns that match nothing. Two things differ: a pattern's
files are taken sorted and without hidden ones, where TensorFlow takes them as the directory lists them; and
an output that is an input, or a file of another kind without --overwrite, is refused."""


def make_parser() -> Parser:
    parser = Parser("bertdata create-pretraining-data", EXAMPLE, SUMMARY)
    parser.add_argument(
        "--input_file",
        required=True,
        metavar="A,B",
        help="text files or patterns, by commas; the files of a pattern in sorted order",
    )
    parser.add_argument(
        "--output_file", required=True, metavar="C,D", help="TFRecord files to write, by commas"
    )
    parser.add_argument("--vocab_file", required=True, metavar="FILE|NAME", help="WordPiece vocabulary")
    _add(parser, "do_lower_case", boolean, True, "lower-case the text")
    _add(parser, "max_seq_length", integer, 128)
    _add(parser, "max_predictions_per_seq", integer, 20)
    _add(parser, "random_seed", integer, 12345)
    _add(parser, "dupe_factor", integer, 10)
    _add(parser, "masked_lm_prob", float, 0.15)
    _add(parser, "short_seq_prob", float, 0.1)
    _add(parser, "do_whole_word_mask", boolean, False, "Google's script has it: mask whole words")
    _add(parser, "remask", boolean, False, "Graphcore's script has it: write masked positions first")
    _add(
        parser,
        "pad_position_value",
        integer,
        384,
        "with --remask, the position in empty slots",
        alias="pad-position-value",
    )
    _add(parser, "only_check_args", boolean, False, "read the flags and stop", alias="only_check_flags")
    parser.add_argument("--dialect", choices=tuple(DIALECTS), default="mlperf", help="default: mlperf")
    add_overwrite(parser)
    add_engine(parser)
    return parser


def _add(
    parser: Parser, name: str, kind: Callable[[str], Any], default: object, help: str = "", alias: str = ""
) -> None:
    metavar = {boolean: "BOOL", integer: "INT", float: "FLOAT"}[kind]
    shown = str(default).lower()
    told = f"{help} (default: {shown})" if help else f"default: {shown}"
    names = [f"--{name}", *([f"--{alias}"] if alias else [])]
    parser.add_argument(*names, type=kind, default=default, metavar=metavar, help=told)


def read_flags(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The flags' values, as absl reads the command line, and its warnings."""
    parser = make_parser()
    known = {
        option.lstrip("-"): action.type is boolean
        for action in parser._actions
        for option in action.option_strings
        if action.dest != "help"
    }
    line = read_command_line(arguments, known)
    return parser.parse_args(line.flags), line.warnings


def run(arguments: list[str]) -> int:
    args, warnings = read_flags(arguments)
    warn(warnings)
    if args.only_check_args:
        return 0
    settings = ScriptSettings(
        dialect=args.dialect,
        max_seq_length=args.max_seq_length,
        max_predictions_per_seq=max(args.max_predictions_per_seq, 0),
        dupe_factor=args.dupe_factor,
        random_seed=args.random_seed,
        masked_lm_prob=probability(args.masked_lm_prob),
        short_seq_prob=probability(args.short_seq_prob),
        lower_case=args.do_lower_case,
        whole_word_mask=args.do_whole_word_mask,
        remask=args.remask,
        pad_position=args.pad_position_value,
    )
    names = FileNames(args.input_file, args.output_file, args.vocab_file)
    make_files(names, settings, args.engine, overwrite=args.overwrite)
    return 0
