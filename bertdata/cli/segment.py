"""``bertdata segment``: extracted articles, or plain text, to parts with one sentence a line."""

from bertdata.cli.common.parser import (
    Parser,
    add_config,
    add_dry_run,
    add_engine,
    add_punkt_tables,
    add_workers,
)
from bertdata.cli.common.step_progress import ShownProgress
from bertdata.cli.common.text_flags import (
    add_books,
    add_input_kind,
    add_segment_settings,
    given_segment_settings,
)
from bertdata.io.terminal import NOTHING_WRITTEN, say
from bertdata.steps.segment import preview_segment, segment, settings_of
from bertdata.text.languages import language_notes
from bertdata.text.settings import SegmentCounts, SegmentSettings

EXAMPLE = """\
  bertdata segment extracted --output results
  bertdata segment extracted --output shards --recipe nvidia --training-shards 256 --test-shards 256
  bertdata segment books --input-kind text --output results --eval-articles 100
  bertdata segment extracted --books books --output shards --recipe nvidia --prefix books_wiki_en_corpus
  bertdata segment extracted-dewiki --output results --language de --punkt 3.10.4"""

SUMMARY = """\
Cleans extracted articles (files AA/wiki_00 ... as bertdata extract writes them), splits them into
sentences, and gathers them: mlperf into part-00000-of-00500 ..., eval.txt and eval.md5; nvidia into
<prefix>_training_<i>.txt and <prefix>_test_<i>.txt; then manifest.json and MD5SUMS. The same bytes for
any number of workers. Run again after a crash, it makes only what is missing. With --input-kind text each
file is one document, a book for instance; --books gives such files beside articles."""


def make_parser() -> Parser:
    parser = Parser("bertdata segment", EXAMPLE, SUMMARY)
    parser.add_argument(
        "sources", nargs="+", metavar="FILE|DIR", help="files, or directories or URLs of them"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the parts, or its URL")
    add_input_kind(parser)
    add_books(parser)
    add_config(parser, "its table text")
    add_segment_settings(parser)
    add_punkt_tables(parser)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    given = given_segment_settings(args)
    settings = settings_of(given, args.config)
    say(*language_notes(settings.language))
    if args.dry_run:
        preview = preview_segment(
            args.sources,
            args.output,
            settings,
            args.punkt_tables,
            input_kind=args.input_kind,
            books=args.books,
        )
        say(*preview, NOTHING_WRITTEN)
        return 0
    with ShownProgress() as progress:
        counts = segment(
            args.sources,
            args.output,
            input_kind=args.input_kind,
            books=args.books,
            **given,
            punkt_tables=args.punkt_tables,
            config=args.config,
            workers=args.workers,
            engine=args.engine,
            progress=progress,
        )
    say(summary(args.output, settings, counts))
    return 0


def summary(directory: str, settings: SegmentSettings, counts: SegmentCounts) -> str:
    """One line on what was read and written, with everything that was left out."""
    left_out = f"{counts.empty} without text and {counts.lines_outside} lines outside articles left out"
    kept = f"{counts.withheld} withheld for evaluation" if settings.recipe == "mlperf" else left_out
    return (
        f"{directory}: {counts.files} files, {counts.articles} articles, {kept}, "
        f"{counts.sentences} sentences, {counts.bytes_in} bytes in, {counts.bytes_out} out"
    )
