"""``bertdata stats``: print a dataset's statistics and draw the histogram of its lengths."""

import json
from collections.abc import Iterable, Iterator

from bertdata.cli.common.objective_flag import add_objective
from bertdata.cli.common.parser import Parser, add_overwrite, add_workers
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.examples.counting import QUANTILES, find_quantile
from bertdata.examples.objectives import describe_objective
from bertdata.io.terminal import say, say_error, say_text
from bertdata.reports.summary import Statistics
from bertdata.steps.stats import stats

EXAMPLE = """\
  bertdata stats shards
  bertdata stats shards --json --picture lengths.svg"""

SUMMARY = """\
Reads every example of a dataset and prints lengths, padding, the balance of its shards and the statistics
of its objective (for BERT: masks, segments, random pairs); for packed rows also sequences per row and
efficiency. DIR may hold one dataset, several (phase1, phase2), or another tool's shards.
The id of [MASK] comes from the vocabulary next to the manifest, or for another tool's shards from --vocab.
Without either, it is the id that most masked positions have, and the output says so. A masked position
that has its original token counts as kept, even if the token was drawn at random. The shares of [UNK] and
of text that is in no example come from the manifest and refer to the input text."""

_LABEL_WIDTH = 18
_TEXT_BINS = 16
_BAR_WIDTH = 40

_Row = tuple[str, str]


def make_parser() -> Parser:
    """Return the parser of ``bertdata stats``."""
    parser = Parser("bertdata stats", EXAMPLE, SUMMARY)
    parser.add_argument("path", metavar="DIR", help="directory of a dataset, or one shard in any file format")
    parser.add_argument("--vocab", metavar="FILE|NAME", help="vocabulary that the shards were made with")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="write the histogram of lengths to this .svg or .png file (needs matplotlib, which the extra "
        "`pictures` installs)",
    )
    add_overwrite(parser)
    add_objective(parser)
    add_workers(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata stats`` and return the exit status."""
    args = make_parser().parse_args(arguments)
    with StepProgressDisplay() as progress:
        statistics = stats(
            args.path,
            vocab=args.vocab,
            picture=args.picture,
            overwrite=args.overwrite,
            objective=args.objective,
            workers=args.workers,
            progress=progress,
        )
    if args.json:
        say_text(json.dumps({"datasets": [one.as_json() for one in statistics]}, indent=1))
    else:
        for number, one in enumerate(statistics):
            say(*[""] * bool(number), *_format_statistics(one))
    if args.picture:
        say_error(f"wrote {args.picture}")
    return 0


def _format_statistics(one: Statistics) -> list[str]:
    """Return all lines that describe a dataset."""
    rows = [*_describe_sizes(one), *_describe_lengths(one), *one.findings.rows, *_describe_balance(one)]
    lines = [f"{one.path}: {describe_objective(one.title)}"]  # without a recipe, the title is the objective
    lines += [f"  {label:<{_LABEL_WIDTH}}  {value}" for label, value in rows]
    return [*lines, "", *_draw_histogram(one)]


def _describe_sizes(one: Statistics) -> Iterator[_Row]:
    """Yield the rows of the table about examples, tokens, padding and packed rows."""
    yield "shards", f"{len(one.shards):,}"
    yield "examples", f"{one.examples:,}"
    yield "tokens", f"{one.tokens:,} real"
    if one.unknown_share is not None:
        yield "[UNK]", f"{one.unknown_share:.2%} of the {one.input_tokens:,} tokens of the inputs"
    if one.lost_share is not None:
        yield "in no example", f"{one.lost_share:.2%} of the {one.input_tokens:,} tokens of the inputs"
    holder = "per example" if one.layout.packing is None else "per row"
    yield "padding", f"{one.padding:.2%} of the positions, {one.layout.max_seq_length} {holder}"
    if one.layout.packing is not None:
        yield "packed rows", f"{one.rows:,} of the layout {one.layout.packing}"
        counts = [f"{number}: {one.packs[number] / one.rows:.2%}" for number in sorted(one.packs)]
        yield "  sequences per row", f"mean {one.examples / one.rows:.3f}; {', '.join(counts)}"
        yield "  efficiency", f"{1 - one.padding:.3%} of the positions hold a token"


def _describe_lengths(one: Statistics) -> Iterator[_Row]:
    """Yield the rows of the table about the lengths of the examples."""
    lengths, limit = one.lengths, one.layout.max_seq_length
    yield "length", f"mean {one.tokens / one.examples:.1f}, {min(lengths)} to {max(lengths)} tokens"
    yield "  quantiles", ", ".join(f"{p} %: {find_quantile(lengths, p)}" for p in QUANTILES)
    yield "  full", f"{lengths[limit] / one.examples:.2%} of the examples have all {limit} tokens"


def _describe_balance(one: Statistics) -> Iterator[_Row]:
    """Yield the rows of the table about differences in size between the shards."""
    tokens = [shard.tokens for shard in one.shards]
    yield "tokens per shard", f"mean {one.tokens / len(tokens):,.1f}, {min(tokens):,} to {max(tokens):,}"
    yield "  imbalance", f"the largest is {one.imbalance:.2%} above the mean"


def _draw_histogram(one: Statistics) -> Iterable[str]:
    """Yield one line for each bin of the histogram, with its shortest and longest length, its count, and a
    bar.
    """
    histogram = one.histogram(_TEXT_BINS)
    limit, largest = one.layout.max_seq_length, max(histogram.examples)
    yield f"  {'length':>13}  {'examples':>12}"
    for index, examples in enumerate(histogram.examples):
        first = index * histogram.bin_tokens + 1
        last = min(first + histogram.bin_tokens - 1, limit)
        bar = "#" * -(-examples * _BAR_WIDTH // largest)
        yield f"  {first:>5} to {last:>4}  {examples:>12,}  {bar}".rstrip()
