"""The pipeline's own flags, and those left for Beam and its runner, parsed apart."""

import argparse

from bertdata.errors import SettingsError
from bertdata.parser import Parser, add_engine, positive
from bertdata.settings_flags import add_settings

PROGRAM = "beam_pipelines.prepare"

EXAMPLE = """\
  python -m beam_pipelines.prepare --input 'results/part-*' --output shards --vocab vocab.txt
  python -m beam_pipelines.prepare --input 'results/part-*' --output shards --vocab vocab.txt \\
      --recipe nvidia --direct_running_mode multi_processing --direct_num_workers 2"""

SUMMARY = """\
The shards, manifest.json and MD5SUMS of bertdata create, byte for byte, made on any Beam runner.
Flags that are not listed here go to Beam and its runner (--runner, --direct_num_workers, ...).
Available in this version: --input-kind parts with --shuffle none."""

AVAILABLE = {"input_kind": "parts", "shuffle": "none"}


def make_parser() -> Parser:
    parser = Parser(PROGRAM, EXAMPLE, SUMMARY)
    parser.add_argument(
        "--input",
        required=True,
        nargs="+",
        action="extend",
        metavar="GLOB",
        help="input files, patterns or URLs; several by spaces, commas or repetition; sorted before use",
    )
    parser.add_argument(
        "--input-kind",
        choices=("dump", "articles", "parts"),
        default="parts",
        help="parts (default): text with one sentence a line; dump, articles: not available yet",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the dataset, or its URL")
    parser.add_argument(
        "--vocab", required=True, metavar="FILE", help="WordPiece vocabulary, one token a line"
    )
    parser.add_argument(
        "--shuffle",
        choices=("none", "global"),
        default="none",
        help="none (default): one shard for each part; global: not available yet",
    )
    parser.add_argument(
        "--num-shards", type=positive, metavar="N", help="not available yet: for --shuffle global"
    )
    add_settings(parser)
    add_engine(parser)
    return parser


def parse_flags(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own flags, and the words left for Beam."""
    flags, beam_words = make_parser().parse_known_args(arguments)
    for name, available in AVAILABLE.items():
        if (given := getattr(flags, name)) != available:
            flag = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{flag} {given}: not available yet in this version; available: {available}")
    if flags.num_shards is not None:
        raise SettingsError("--num-shards: not available yet in this version; it goes with --shuffle global")
    flags.input = [pattern for given in flags.input for pattern in given.split(",") if pattern]
    return flags, beam_words
