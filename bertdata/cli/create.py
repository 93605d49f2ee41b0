"""``bertdata create``: make shards of training examples."""

from collections.abc import Sequence

from bertdata.build.dry_run import show_previews
from bertdata.cli.common.example_flags import add_create_flags
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_workers
from bertdata.cli.common.request_flags import add_flags, make_request
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.cli.common.text_flags import add_language_settings, add_part_settings
from bertdata.dataset.manifest import format_summary
from bertdata.io.freed_memory import keep_less_freed_memory
from bertdata.io.terminal import NOTHING_WRITTEN, say, say_error
from bertdata.steps.create import check_given_fields, has_records, make_request_parts, plan_run
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.source_parts import preview_parts
from bertdata.steps.values import count_workers

EXAMPLE = """\
  bertdata create corpus/*.jsonl.zst --output shards --vocab vocab.txt --text-field text
  bertdata create results --output shards --vocab vocab.txt --recipe mlperf
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe nvidia --phase 2
  bertdata create results --output shards --vocab vocab.txt --config dataset.toml
  bertdata create results/part-* --output shards --tokenizer roberta-base/tokenizer.json --objective mlm
  bertdata create results/part-* --output shards --vocab vocab.txt --shuffle global --num-shards 500"""

SUMMARY = """\
Makes training examples from text and writes them as shards, then manifest.json and MD5SUMS. The text is
either parts (one sentence per line, a blank line between documents, as bertdata segment writes them) or
records (JSONL, CSV, Parquet, ...), which are first turned into parts in OUTPUT.text. From a directory that
bertdata segment made, only the parts to train on are read, not eval.txt or NVIDIA's test shards.

Each part becomes one shard. With --shuffle global, the documents of all parts are mixed first, and
--num-shards says how many shards to make; DIR/unfinished then needs disk space of about half the text's
size while it runs. A recipe with two phases writes DIR/phase1 and DIR/phase2. After a crash, run the same
command again: it makes only what is missing, and the result is the same."""


def make_parser(arguments: Sequence[str] = ()) -> Parser:
    """Return the argument parser of ``bertdata create``.

    arguments: the command line. If its --objective names a user's own objective, this objective's flags are
        added.
    """
    parser = Parser("bertdata create", EXAMPLE, SUMMARY)
    parser.add_argument(
        "parts",
        nargs="+",
        metavar="PART",
        help="text file, pattern, URL, directory made by bertdata segment, or records (JSONL, Parquet, "
        "Arrow, extracted articles; for other formats give --input-kind)",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the dataset, or its URL")
    add_create_flags(parser, arguments)
    sources = parser.add_argument_group(
        "records", "for records in place of parts; bertdata segment explains these flags"
    )
    add_flags(sources, CreateRequest, "input_kind")
    add_language_settings(sources)
    add_part_settings(sources)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata create`` and return the exit status."""
    args = make_parser(arguments).parse_args(arguments)
    request = make_request(CreateRequest, args)
    keep_less_freed_memory()
    if args.dry_run:
        print_preview(request)
        return 0
    with StepProgressDisplay() as progress:
        request = make_request_parts(request, progress)
    work = plan_run(request)
    say(*work.notes)
    with StepProgressDisplay() as progress:
        made = work.make(count_workers(request.workers), progress)
    for dataset in made.datasets:
        for warning in dataset.warnings:
            say_error(f"bertdata: warning: {warning}")
        share = f", {dataset.ones}" if dataset.ones else ""
        say(format_summary(dataset.directory, dataset.manifest.as_json()) + share)
    return 0


def print_preview(request: CreateRequest) -> None:
    """Print what a run would write: parts (text files) if the input is records, otherwise shards."""
    if has_records(request):
        check_given_fields(request)
        say(*preview_parts(request), NOTHING_WRITTEN)
        return
    work = plan_run(request)
    say(*work.notes)
    for warning in work.warnings():
        say_error(f"bertdata: warning: {warning}")
    previews = work.previews()
    show_previews(previews, work.estimate(previews, count_workers(request.workers)))
