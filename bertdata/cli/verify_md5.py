"""``bertdata verify-md5``: compare files with a manifest, an md5sum file or a published table of md5s."""

import json
import sys
from collections import Counter
from collections.abc import Iterator

from bertdata.cli.common.objective_flag import add_objective
from bertdata.cli.common.parser import Parser, add_workers
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.dataset.findings import EXTRA, LEFT_OUT, MISSING, Finding, Report
from bertdata.dataset.manifest import format_skipped_note
from bertdata.dataset.published.sums import list_sum_tables
from bertdata.dataset.published.tables import list_table_names
from bertdata.io.terminal import say, say_text
from bertdata.steps.verify import verify

EXAMPLE = """\
  bertdata verify-md5 shards
  bertdata verify-md5 shards --chain --source results --source extracted
  bertdata verify-md5 shards --public-key key.pub
  bertdata verify-md5 results --table mlperf-v1.0
  bertdata verify-md5 hdf5_4320_shards_varlength --table nvidia-mlperf-4320"""

SUMMARY = """\
Checks files against a list of md5s. PATH may be a directory with a manifest.json (dataset, parts, extracted
articles), a manifest.json, a vocabulary's manifest, or a list of md5s in the format of md5sum, BSD md5 or
openssl.
With --table, checks a directory against a published table. For a table nvidia-mlperf-... (the md5s of
NVIDIA's shards with rows of varying length) every shard must be there.
With --chain, follows the manifests from step to step back to the Wikipedia dump and prints a line per step.
A chain that ends early is no fault; a step whose md5s do not match is.
With --public-key, also checks the directory's signature (bertdata sign): every file must be as it was signed,
and no file may be missing or new. A run or an exported model has no md5s; its signature alone is checked.
Prints a line per fault. For more than 50 missing, extra or wrong files of a table it prints 10 and a
count; --json lists all. Exit status: 0 no faults, 1 faults, 2 wrong usage."""

MANY, FIRST = 50, 10
"""Limits for printing. If more than MANY files have the same status, only the FIRST of them are printed."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata verify-md5``."""
    parser = Parser("bertdata verify-md5", EXAMPLE, SUMMARY)
    parser.add_argument(
        "path",
        metavar="PATH",
        help="what to check: a directory with a manifest, a manifest, an md5sum file or, with --table, any "
        "directory",
    )
    parser.add_argument(
        "--table",
        metavar="NAME|FILE",
        help="published table to check the directory against: "
        f"{', '.join([*list_table_names(), *list_sum_tables()])}, or a .tsv file with the columns "
        "label, bytes, md5 and paths, or name and sum",
    )
    parser.add_argument(
        "--content",
        action="store_true",
        help="compare examples, not bytes: a file of another tool passes if it holds the same examples",
    )
    parser.add_argument(
        "--anywhere",
        action="store_true",
        help="for an md5sum file: also check files outside its directory (absolute paths, .., URLs)",
    )
    parser.add_argument(
        "--chain",
        action="store_true",
        help="check the manifests of all steps back to the dump: parts, articles, dump",
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DIR",
        help="with --chain: the parts' directory, the articles' directory, or the dump, to check too; may be "
        "repeated",
    )
    parser.add_argument(
        "--public-key",
        metavar="FILE",
        help="also check the signature of the directory with this public key, a PEM file",
    )
    parser.add_argument(
        "--signature",
        metavar="FILE",
        help="with --public-key: file with the signature (default: model.sig in the directory)",
    )
    add_objective(parser)
    add_workers(parser)
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    return parser


def run(arguments: list[str]) -> int:
    """Check the files. Return 0 if all are sound, otherwise 1."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.table and args.content:
        parser.error("--table and --content exclude each other: tables were published for the original bytes")
    if args.table and args.chain:
        parser.error("--table and --chain exclude each other: a published table has no chain")
    if args.source and not args.chain:
        parser.error("--source goes with --chain")
    if args.signature and not args.public_key:
        parser.error("--signature goes with --public-key")
    with StepProgressDisplay() as progress:
        report = verify(
            args.path,
            table=args.table,
            content=args.content,
            anywhere=args.anywhere,
            chain=args.chain,
            source=args.source,
            public_key=args.public_key,
            signature=args.signature,
            objective=args.objective,
            workers=args.workers,
            progress=progress if sys.stderr.isatty() else None,
        )
    if args.json:
        say_text(json.dumps(report.as_json(), indent=1))
    else:
        _print_report(report, every=bool(args.table))
    return 0 if report.sound else 1


def _print_report(report: Report, *, every: bool) -> None:
    """Print the results of the verification.

    every: True also prints files of a table that have no fault.
    """
    for line in report.chain:
        say(line)
    if report.signature is not None:
        say(report.signature)
    for line in _format_table_findings(report) if every else map(str, report.faults):
        say(line)
    state = "sound" if report.sound else _format_count(len(report.faults), "fault")
    right, aside = _format_count(report.count("right"), "file"), format_skipped_note(report.count(LEFT_OUT))
    say(f"{report.path}: {right} right, {state}{aside}")


def _format_table_findings(report: Report) -> Iterator[str]:
    """Yield the lines about a published table: the files that exist, their number, and the missing files."""
    here = [finding for finding in report.findings if finding.status != MISSING]
    absent = [finding for finding in report.findings if finding.status == MISSING]
    found = sum(finding.status != EXTRA and finding.file != report.path for finding in here)
    yield from _format_findings(here)
    if absent:
        yield f"{report.path}: {found} of the table's {found + len(absent)} files found"
    yield from _format_findings(absent)


def _format_findings(findings: list[Finding]) -> Iterator[str]:
    """Yield a line for each checked file.

    If more than MANY files have the same status, yield lines for the FIRST of them and a line that counts the
    others.
    """
    numbers = Counter(finding.status for finding in findings)
    said: Counter[str] = Counter()
    for finding in findings:
        status, number = finding.status, numbers[finding.status]
        said[status] += 1
        if number <= MANY or said[status] <= FIRST:
            yield str(finding)
        elif said[status] == number:
            yield f"and {number - FIRST} more: {status}"


def _format_count(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where needed: "1 file", "2 files"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
