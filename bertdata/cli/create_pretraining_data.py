"""``bertdata create-pretraining-data``: replacement for MLPerf's script of that name, with its flags."""

import argparse
from collections.abc import Callable
from typing import Any

from bertdata.cli.common.absl_flags import parse_absl_boolean, parse_absl_integer, read_command_line
from bertdata.cli.common.parser import Parser, add_engine, add_overwrite
from bertdata.cli.common.script_examples import (
    FileNames,
    ScriptSettings,
    clip_probability,
    make_files,
    print_warnings,
)
from bertdata.config.dialects import DIALECTS

EXAMPLE = """\
  bertdata create-pretraining-data --input_file=part-00000-of-00500 \\
      --output_file=part-00000.tfrecord --vocab_file=vocab.txt --max_seq_length=512 \\
      --max_predictions_per_seq=76 --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=10"""

SUMMARY = """\
Does what create_pretraining_data.py of MLPerf and Google does, with the same flags. The examples of all
inputs together are written to the outputs in turn. Flags are read as the scripts read them: with one dash
or two, --name value, --noname and --flagfile. Existing TFRecord files are overwritten. Warnings name what
the scripts ignore silently: unknown flags, other words, patterns without a match.

Two things differ. The files of a pattern are sorted and hidden files are left out, where TensorFlow takes
them in the order of the directory. And an output that is also an input is refused; so is an output that
is an existing file of another type, unless --overwrite is given."""


def make_parser() -> Parser:
    """Return the parser, whose flags are named as in MLPerf's script create_pretraining_data.py."""
    parser = Parser("bertdata create-pretraining-data", EXAMPLE, SUMMARY)
    parser.add_argument(
        "--input_file",
        required=True,
        metavar="A,B",
        help="text files or patterns, separated by commas; the files of a pattern are sorted",
    )
    parser.add_argument(
        "--output_file", required=True, metavar="C,D", help="TFRecord files to write, separated by commas"
    )
    parser.add_argument(
        "--vocab_file", required=True, metavar="FILE|NAME", help="WordPiece vocabulary, one token per line"
    )
    _add_flag(parser, "do_lower_case", parse_absl_boolean, True, "lower-case the text")
    _add_flag(parser, "max_seq_length", parse_absl_integer, 128, "token ids in an example, padding included")
    _add_flag(
        parser, "max_predictions_per_seq", parse_absl_integer, 20, "most masked positions in an example"
    )
    _add_flag(parser, "random_seed", parse_absl_integer, 12345, "seed of all random draws")
    _add_flag(parser, "dupe_factor", parse_absl_integer, 10, "passes over the text; each draws new masks")
    _add_flag(parser, "masked_lm_prob", float, 0.15, "share of an example's token ids to mask")
    _add_flag(
        parser, "short_seq_prob", float, 0.1, "share of documents cut into shorter examples of random length"
    )
    _add_flag(
        parser,
        "do_whole_word_mask",
        parse_absl_boolean,
        False,
        "mask whole words (a flag of Google's script)",
    )
    _add_flag(
        parser,
        "remask",
        parse_absl_boolean,
        False,
        "put the masked tokens of an example before all others (a flag of Graphcore's script)",
    )
    _add_flag(
        parser,
        "pad_position_value",
        parse_absl_integer,
        384,
        "with --remask, position to write into empty slots",
        alias="pad-position-value",
    )
    _add_flag(
        parser,
        "only_check_args",
        parse_absl_boolean,
        False,
        "check the flags and stop",
        alias="only_check_flags",
    )
    parser.add_argument(
        "--dialect",
        choices=tuple(DIALECTS),
        default="mlperf",
        help="program whose details of tokenizing and masking to follow (default: mlperf)",
    )
    add_overwrite(parser)
    add_engine(parser)
    return parser


def _add_flag(
    parser: Parser, name: str, kind: Callable[[str], Any], default: object, help: str, alias: str = ""
) -> None:
    """Add a flag, whose help shows its default.

    alias: a second name for the flag.
    """
    metavar = {parse_absl_boolean: "BOOL", parse_absl_integer: "INT", float: "FLOAT"}[kind]
    help = f"{help} (default: {str(default).lower()})"
    names = [f"--{name}", *([f"--{alias}"] if alias else [])]
    parser.add_argument(*names, type=kind, default=default, metavar=metavar, help=help)


def read_flags(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the command line as absl would. Return the values of the flags, and warnings."""
    parser = make_parser()
    known = {
        option.lstrip("-"): action.type is parse_absl_boolean
        for action in parser._actions
        for option in action.option_strings
        if action.dest != "help"
    }
    line = read_command_line(arguments, known)
    return parser.parse_args(line.flags), line.warnings


def run(arguments: list[str]) -> int:
    """Run a command line of MLPerf's script create_pretraining_data.py and return the exit status."""
    args, warnings = read_flags(arguments)
    print_warnings(warnings)
    if args.only_check_args:
        return 0
    settings = ScriptSettings(
        dialect=args.dialect,
        max_seq_length=args.max_seq_length,
        max_predictions_per_seq=max(args.max_predictions_per_seq, 0),
        dupe_factor=args.dupe_factor,
        random_seed=args.random_seed,
        masked_lm_prob=clip_probability(args.masked_lm_prob),
        short_seq_prob=clip_probability(args.short_seq_prob),
        lower_case=args.do_lower_case,
        whole_word_mask=args.do_whole_word_mask,
        remask=args.remask,
        pad_position=args.pad_position_value,
    )
    names = FileNames(args.input_file, args.output_file, args.vocab_file)
    make_files(names, settings, args.engine, overwrite=args.overwrite)
    return 0
