"""``bertdata lineage``: show every step that led to a dataset, a run or a model."""

import json

from bertdata.cli.common.parser import Parser
from bertdata.io.terminal import say, say_error, say_text
from bertdata.lineages.tree import draw_lineage
from bertdata.steps.lineage import lineage
from bertdata.trust.formats import LINEAGE_FORMATS

EXAMPLE = """\
  bertdata lineage shards
  bertdata lineage run
  bertdata lineage bert-tiny --json
  bertdata lineage shards --format croissant > shards/croissant.json"""

SUMMARY = """\
Shows how a dataset, parts, articles, a vocabulary, a run, a checkpoint or an exported model was made: every
step back to the Wikipedia dump or to your own files, each with its settings, versions and md5s.
It reads the records that each step leaves (manifest.json, state.json, lineage.json) and the copies of earlier
records that are kept with them, so it works after the data have moved. Where a step cannot be followed
further, the tree says why. The files of an exported model are compared with its record. Those of other
directories are not: bertdata verify-md5 does that.
With --format, prints the lineage for other programs. in-toto: a JSON line per step, a statement with SLSA's
provenance (extra trust). For a dataset alone: croissant, its description in Croissant 1.1, for which every
file is read and compared with the manifest; card, a README.md with a heading for Hugging Face's hub.
Exit status: 0 no faults, 1 a record is damaged or a model's file was changed, 2 wrong usage."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata lineage``."""
    parser = Parser("bertdata lineage", EXAMPLE, SUMMARY)
    parser.add_argument(
        "path",
        metavar="PATH",
        help="directory or file, or its URL; a run means its best checkpoint with keep_best, else its newest",
    )
    parser.add_argument("--json", action="store_true", help="print the steps as one JSON object")
    parser.add_argument(
        "--format",
        choices=LINEAGE_FORMATS,
        help="print the lineage in a format of other programs instead of a tree",
    )
    return parser


def run(arguments: list[str]) -> int:
    """Show the lineage. Return 0 if it has no faults, otherwise 1."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    if args.json and args.format:
        parser.error("--json and --format exclude each other")
    found = lineage(args.path)
    if args.format:
        say_text(LINEAGE_FORMATS[args.format](found))
        say_error(*(f"bertdata: warning: {fault}" for fault in found.faults))
    elif args.json:
        say_text(json.dumps(found.as_json(), indent=1, ensure_ascii=False))
    else:
        say(*draw_lineage(found))
        steps, faults = len(found.list_steps()), len(found.faults)
        told = f"{faults} {'fault' if faults == 1 else 'faults'}" if faults else "no faults"
        say(f"{args.path}: {steps} {'step' if steps == 1 else 'steps'}, {told}")
    return 1 if found.faults else 0
