"""``bertdata report``: write an HTML page about one dataset, or several side by side."""

import argparse

from bertdata.cli.common.objective_flag import add_objective
from bertdata.cli.common.parser import Parser, add_overwrite, parse_positive
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.io.terminal import say, say_error
from bertdata.steps.write_report import SAMPLE, write_report

EXAMPLE = """\
  bertdata report shards --output report.html
  bertdata report shards other-shards --output both.html"""

SUMMARY = """\
Writes one HTML file that any browser shows without a network: where the data come from, settings, lengths
and padding, what packing or bins would save, masks compared with what the settings lead to expect, the
objective's statistics, words and tokens, balance of the shards, and examples to read. Faults that
verify-md5 finds are on top, in red. Several datasets are shown side by side. Totals, lengths and balance
count all examples if the manifest has them. Masks, pairs, words and tokens come from a sample, which the
page describes. If a file has faults, the page is still written and the exit status is 1."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata report``."""
    parser = Parser("bertdata report", EXAMPLE, SUMMARY)
    parser.add_argument(
        "paths", nargs="+", metavar="DIR", help="directory of a dataset, or one shard in any file format"
    )
    parser.add_argument("--output", required=True, metavar="FILE.html", help="page to write")
    parser.add_argument("--vocab", metavar="FILE|NAME", help="vocabulary that the shards were made with")
    parser.add_argument(
        "--sample",
        type=parse_positive,
        metavar="N",
        help=f"number of examples to read for masks, pairs, words and tokens (default: {SAMPLE:,})",
    )
    parser.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare all files with their manifest, which reads every byte of the files (default: yes)",
    )
    add_overwrite(parser)
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Write the page. Return 1 if it lists faults, otherwise 0."""
    args = make_parser().parse_args(arguments)
    with StepProgressDisplay() as progress:
        faults = write_report(
            args.paths,
            args.output,
            vocab=args.vocab,
            objective=args.objective,
            sample=args.sample,
            verify=args.verify,
            overwrite=args.overwrite,
            progress=progress,
        )
    for fault in faults:
        say_error(fault)
    told = "" if not faults else f", with {len(faults)} {'fault' if len(faults) == 1 else 'faults'} on top"
    say(f"wrote {args.output}{told}")
    return 1 if faults else 0
