"""``bertdata segment``: extracted articles to parts with one sentence a line."""

from typing import cast

from bertdata.build.dry_run import NOTHING_WRITTEN
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_workers
from bertdata.cli.common.progress import Progress
from bertdata.cli.common.text_flags import add_punkt_tables, add_segment_settings, given_segment_settings
from bertdata.io import storage
from bertdata.io.assets import find_punkt_tables
from bertdata.io.process_pool import available_cores
from bertdata.text.directory import TextDirectory
from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.plan import plan_text
from bertdata.text.punkt.boundaries import Variant
from bertdata.text.reading import find_extracted_files
from bertdata.text.segment import segment
from bertdata.text.settings import SegmentCounts, SegmentSettings

EXAMPLE = """\
  bertdata segment extracted --output results
  bertdata segment extracted --output shards --recipe nvidia --training-shards 256 --test-shards 256"""

SUMMARY = """\
Cleans extracted articles (files AA/wiki_00 ... as bertdata extract writes them), splits them into
sentences, and gathers them: mlperf into part-00000-of-00500 ..., eval.txt and eval.md5; nvidia into
<prefix>_training_<i>.txt and <prefix>_test_<i>.txt; then manifest.json and MD5SUMS. The same bytes for
any number of workers. Run again after a crash, it makes only what is missing."""


def make_parser() -> Parser:
    parser = Parser("bertdata segment", EXAMPLE, SUMMARY)
    parser.add_argument(
        "sources", nargs="+", metavar="FILE|DIR", help="extracted files, or directories or URLs of them"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the parts, or its URL")
    add_segment_settings(parser)
    add_punkt_tables(parser)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    settings = SegmentSettings(**given_segment_settings(args))
    files = find_extracted_files(args.sources)
    find_punkt_tables(args.punkt_tables)  # fetched once, before the workers look for them
    if args.dry_run:
        show_plan(files, args.output, settings)
        return 0
    sizes = iter(files)
    with Progress("segmenting", sum(storage.each(files, storage.size)), unit="bytes") as progress:
        counts = segment(
            files,
            args.output,
            settings,
            LoadSplitter(cast(Variant, settings.punkt), args.engine, args.punkt_tables),
            workers=args.workers or available_cores(),
            progress=lambda done: progress.advance(done, f"segmented {next(sizes)}"),
        )
    print(summary(args.output, settings, counts))
    return 0


def show_plan(files: list[str], directory: str, settings: SegmentSettings) -> None:
    """Print what would be read and written; errors as from segment."""
    plan = plan_text(files, settings)
    TextDirectory(directory, plan).commit.refuse_others()
    print("\n".join([*plan.lines(files, directory), NOTHING_WRITTEN]))


def summary(directory: str, settings: SegmentSettings, counts: SegmentCounts) -> str:
    """One line on what was read and written, with everything that was left out."""
    left_out = f"{counts.empty} without text and {counts.lines_outside} lines outside articles left out"
    kept = f"{counts.withheld} withheld for evaluation" if settings.recipe == "mlperf" else left_out
    return (
        f"{directory}: {counts.files} files, {counts.articles} articles, {kept}, "
        f"{counts.sentences} sentences, {counts.bytes_in} bytes in, {counts.bytes_out} out"
    )
