"""``bertdata pack``: pack the examples of a dataset into rows, several short examples to a row."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from bertdata.cli.common.parser import Parser, add_workers
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.dataset.manifest import format_summary
from bertdata.io.terminal import say, say_text
from bertdata.steps.pack import pack_rows
from bertdata.steps.pack_request import GivenPackSettings, PackRequest

if TYPE_CHECKING:
    from bertdata.packing.forecast import PackForecast

EXAMPLE = """\
  bertdata pack shards --output packed
  bertdata pack shards --output packed --layout habana
  bertdata pack shards --plan-only"""

SUMMARY = """\
Puts up to three examples one after the other into each row, so that almost no padding remains. A linear
program plans the rows from the examples' lengths; a random order spreads neighbouring examples over the
whole output. The same examples and settings give the same bytes, for any number of workers. While it
runs, DIR/unfinished needs about three bytes per token. After a crash, run the same command again: it makes
only what is missing."""

_LABEL_WIDTH = 16
_METHODS = {"lp": "linear program", "lpfhp": "longest pack first", "nnls": "non-negative least squares"}


def make_parser() -> Parser:
    """Return the parser of ``bertdata pack``."""
    parser = Parser("bertdata pack", EXAMPLE, SUMMARY)
    parser.add_argument(
        "path", metavar="DIR", help="directory of a dataset, or its URL; with --unverified, files"
    )
    parser.add_argument("--output", metavar="DIR", help="directory of the packed dataset, or its URL")
    add_flags(parser, PackRequest, *(item.name for item in fields(GivenPackSettings)), "plan_only")
    parser.add_argument("--json", action="store_true", help="print the plan as one JSON object")
    add_workers(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata pack`` and return the exit status."""
    args = make_parser().parse_args(arguments)
    with StepProgressDisplay() as progress:
        made = pack_rows(make_request(PackRequest, args, progress=progress))
    if args.json:
        say_text(json.dumps(made.forecast.as_json(), indent=1))
    else:
        say(f"{made.forecast.path}: packed in the layout {made.forecast.layout}")
        say(*(f"  {label:<{_LABEL_WIDTH}}  {value}" for label, value in _describe_plan(made.forecast)))
    if made.directory is not None and made.manifest is not None and not args.json:
        say(format_summary(made.directory, made.manifest.as_json()))
    return 0


def _describe_plan(plan: "PackForecast") -> Iterator[tuple[str, str]]:
    """Yield the label and the value of each line that describes how the examples will be packed."""
    most = plan.max_sequences_per_pack
    yield "examples", f"{plan.examples:,}, {plan.tokens:,} tokens"
    yield "rows", f"{plan.rows:,} of {plan.max_seq_length} positions, by {_METHODS[plan.method]}"
    bound = "" if plan.bound is None else f"; no packing of at most {most} per row passes {plan.bound:.4%}"
    yield "efficiency", f"{plan.efficiency:.4%} of the positions hold tokens{bound}"
    shares = ", ".join(f"{number}: {rows / plan.rows:.1%}" for number, rows in plan.rows_by_examples.items())
    yield "examples per row", f"{plan.examples_per_row:.5f} ({shares})"
    yield "padded", f"{plan.padded_efficiency:.4%} with one example per row"
    yield "time saved", f"{plan.time_saved:.1%} of an epoch, {plan.examples_per_row:.3f} times the speed"
    yield "shards", f"{plan.shards:,} in {plan.format}"
