"""``bertdata extract``: a Wikipedia dump to extracted articles."""

from bertdata.build.dry_run import NOTHING_WRITTEN
from bertdata.cli.common.parser import Parser, add_dry_run, add_workers
from bertdata.cli.common.step_progress import ShownProgress
from bertdata.cli.common.text_flags import add_extract_settings, given_extract_settings
from bertdata.io.terminal import say
from bertdata.steps.extract import extract
from bertdata.wiki.extract import preview_extraction

EXAMPLE = """\
  bertdata extract enwiki-20200101-pages-articles.xml.bz2 --output extracted
  bertdata extract dump.xml --output extracted --date 2020-01-01 --no-templates"""

SUMMARY = """\
Writes the articles of a Wikipedia dump (.xml, .xml.bz2, multistream too) into DIR/AA/wiki_00 and so on:
the bytes of wikiextractor 3.1.0's own command run on the date given, for any number of workers; then
manifest.json and MD5SUMS. MLPerf's published data were made with another version, which leaves other
text. Every page is counted as written or as skipped for a named reason. Run again after a crash, it
goes on where it was."""


def make_parser() -> Parser:
    parser = Parser("bertdata extract", EXAMPLE, SUMMARY)
    parser.add_argument("dump", metavar="DUMP", help="the dump, or its URL")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="local directory of the extracted articles"
    )
    add_extract_settings(parser)
    add_dry_run(parser)
    add_workers(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    if args.dry_run:
        preview = preview_extraction(args.dump, args.output, given_extract_settings(args))
        say(*preview, NOTHING_WRITTEN)
        return 0
    with ShownProgress(tenths=True) as progress:
        report = extract(
            args.dump,
            args.output,
            date=args.date,
            templates=not args.no_templates,
            skip_page=args.skip_page or (),
            workers=args.workers,
            progress=progress,
        )
    say(*report.lines())
    return 0
