"""The pipeline's own flags, and those of Beam and its runner, parsed apart."""

import argparse
from itertools import pairwise
from typing import Any

from bertdata.errors import MissingExtraError, SettingsError
from bertdata.parser import Parser, add_engine, positive
from bertdata.settings_flags import add_settings

PROGRAM = "beam_pipelines.prepare"

EXAMPLE = """\
  python -m beam_pipelines.prepare --recipe mlperf --input 'results/part-*' --output shards --vocab vocab.txt
  python -m beam_pipelines.prepare --recipe nvidia --input 'gs://bucket/part-*' --output gs://bucket/shards \\
      --vocab gs://bucket/vocab.txt --direct_running_mode multi_processing --direct_num_workers 8"""

SUMMARY = """\
The shards, manifest.json and MD5SUMS of bertdata create, byte for byte, made on any Beam runner.
Flags that are not listed here go to Beam and its runner (--runner, --direct_num_workers, ...).
Available in this version: --input-kind parts with --shuffle none."""

AVAILABLE = {"input_kind": "parts", "shuffle": "none"}

LOCAL_RUNNERS = ("directrunner", "direct", "switchingdirectrunner", "fnapirunner")
OPEN_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner")
"""Runners that hand flags which Beam's Python side does not know on to a job server."""


def make_parser() -> Parser:
    parser = Parser(PROGRAM, EXAMPLE, SUMMARY)
    parser.add_argument(
        "--input", required=True, nargs="+", action="extend", metavar="GLOB",
        help="input files, patterns or URLs, also separated by commas, also repeated; sorted before use",
    )  # fmt: skip
    parser.add_argument(
        "--input-kind", choices=("dump", "articles", "parts"), default="parts",
        help="what the input is (default: parts, text with one sentence a line; available: parts)",
    )  # fmt: skip
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the dataset, or its URL")
    parser.add_argument("--vocab", required=True, metavar="FILE", help="WordPiece vocabulary, one token a line")
    parser.add_argument(
        "--shuffle", choices=("none", "global"), default="none",
        help="none: a shard for each part; global: documents mixed over all shards (available: none)",
    )  # fmt: skip
    parser.add_argument("--num-shards", type=positive, metavar="N", help="shards to make with --shuffle global")
    add_settings(parser)
    add_engine(parser)
    return parser


def parse_flags(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own flags, and the words left for Beam."""
    flags, beam_words = make_parser().parse_known_args(arguments)
    for name, available in AVAILABLE.items():
        if (given := getattr(flags, name)) != available:
            flag = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{flag} {given}: not available yet in this version; available: {flag} {available}")
    if flags.num_shards is not None:
        raise SettingsError("--num-shards goes with --shuffle global: not available yet in this version")
    flags.input = [pattern for given in flags.input for pattern in given.split(",") if pattern]
    return flags, beam_words


def beam_options(words: list[str]) -> Any:
    """Beam's PipelineOptions of the words; SettingsError for one that neither we nor Beam know."""
    try:
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
    except ImportError:
        raise MissingExtraError(f"{PROGRAM} needs the package apache-beam: pip install 'bertdata[beam]'") from None
    options = PipelineOptions(words)
    standard = options.view_as(StandardOptions)
    runner = (standard.runner or "DirectRunner").lower()
    if runner.rpartition(".")[2] not in OPEN_RUNNERS and (unknown := _unknown_words(words, options)):
        raise SettingsError(f"{', '.join(unknown)}: neither a flag of ours nor of Beam (see {PROGRAM} --help)")
    if runner in LOCAL_RUNNERS:
        # Beam's DirectRunner first tries Prism, a program that it downloads, and falls back on its Python
        # runner when that fails. Naming that one keeps a local run local, and spares it the attempt.
        standard.runner = "FnApiRunner"
    return options


def _unknown_words(words: list[str], options: Any) -> list[str]:
    """Words that Beam would ignore: a misspelt flag must not silently make another dataset."""
    known = options.get_all_options()
    names = set(options.get_all_options(retain_unknown_options=True)) - set(known)
    flags = [word for word in words if word.split("=")[0].lstrip("-").replace("-", "_") in names]
    strays = [
        word
        for before, word in pairwise(["", *words])
        if not word.startswith("-") and (not before.startswith("-") or "=" in before)
    ]
    return flags + strays
