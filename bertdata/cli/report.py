"""``bertdata report``: a page on a dataset, or on several side by side."""

import argparse

from bertdata.cli.common.objective_flag import add_objective
from bertdata.cli.common.parser import Parser, add_overwrite, positive
from bertdata.cli.common.step_progress import ShownProgress
from bertdata.io.terminal import say, say_error
from bertdata.steps.write_report import SAMPLE, write_report

EXAMPLE = """\
  bertdata report shards --output report.html
  bertdata report shards other-shards --output both.html"""

SUMMARY = """\
Writes one file of HTML that any browser shows without a network: provenance, settings, lengths and fill,
what packing or bins would save, masks beside what is expected, the statistics of the objective, words and
tokens, balance of shards, examples to read, and on top in red what verify-md5 finds. Several datasets stand
side by side. Totals, lengths and balance are of all examples where the manifest tells them; masks, pairs,
words and tokens are of a sample, and the page says of which. Exit status 1 where a file is at fault: the
page is written all the same."""


def make_parser() -> Parser:
    parser = Parser("bertdata report", EXAMPLE, SUMMARY)
    parser.add_argument(
        "paths", nargs="+", metavar="DIR", help="dataset directory, or one shard of any container"
    )
    parser.add_argument("--output", required=True, metavar="FILE.html", help="the page to write")
    parser.add_argument("--vocab", metavar="FILE|NAME", help="the vocabulary that the shards were made with")
    parser.add_argument(
        "--sample",
        type=positive,
        metavar="N",
        help=f"examples that are read for masks, pairs, words and tokens (default: {SAMPLE:,})",
    )
    parser.add_argument(
        "--verify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="hold the files against their manifests, which reads all of them (default: yes)",
    )
    add_overwrite(parser)
    add_objective(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    with ShownProgress() as progress:
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
