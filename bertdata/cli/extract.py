"""``bertdata extract``: extract the articles of a Wikipedia dump."""

import argparse

from bertdata.cli.common.extract_flags import add_extract_settings, parse_day, read_extract_settings
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_workers
from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.config.recipes import RECIPES
from bertdata.io.terminal import NOTHING_WRITTEN, say, say_error
from bertdata.steps.extract import extract, find_recipe_extractor, find_single_dump
from bertdata.steps.keywords import PUNKT_TABLES_HELP
from bertdata.wiki.extract import preview_extraction

FIND_DATE_FLAGS = ("table", "until", "punkt_tables")

EXAMPLE = """\
  bertdata extract enwiki-20200101-pages-articles.xml.bz2 --output extracted
  bertdata extract dump.xml.bz2 --output extracted --extractor mlperf --date 2020-01-01
  bertdata extract dump.xml.bz2 --output extracted --recipe nvidia
  bertdata extract enwiki-20200101-pages-articles-multistream.xml.bz2 --find-date --table mlperf-v1.0"""

SUMMARY = """\
Writes the articles of a Wikipedia dump (.xml or .xml.bz2, multistream too) to DIR/AA/wiki_00 and so on,
then manifest.json and MD5SUMS. The files are byte for byte those of wikiextractor 3.1.0 run on the day
of --date, with either engine and any number of workers. MLPerf's published data were made with version
2.75, which NVIDIA's and Habana's scripts use too: give --extractor 2.75, or --recipe mlperf, nvidia or
habana. Every page is counted, either as written or as skipped for a named reason. After a crash, run the
same command again: it continues where it stopped."""


def make_parser() -> Parser:
    """Return the parser of ``bertdata extract``."""
    parser = Parser("bertdata extract", EXAMPLE, SUMMARY)
    parser.add_argument("dump", nargs="+", metavar="DUMP", help="dump file, or its URL")
    parser.add_argument("--output", metavar="DIR|URL", help="directory to write the articles to, or its URL")
    add_recipe(parser)
    add_extract_settings(parser, extractor_default="default: the recipe's, else 3.1.0")
    add_find_date(parser)
    add_engine(parser)
    add_dry_run(parser)
    add_workers(parser)
    return parser


def add_recipe(parser: Parser) -> None:
    """Add --recipe, which selects the version of the extractor that the program behind the recipe uses."""
    pinned = [recipe.name for recipe in RECIPES.values() if recipe.extractor == "mlperf"]
    parser.add_argument(
        "--recipe",
        choices=tuple(RECIPES),
        metavar="NAME",
        help="recipe of bertdata create that will use the articles; it selects the extractor: 2.75 for "
        f"{', '.join(pinned)}, 3.1.0 for all other recipes",
    )


def add_find_date(parser: Parser) -> None:
    """Add the flags for finding out on which day a published text was extracted from a Wikipedia dump."""
    group = parser.add_argument_group("finding the day of published text (writes nothing)")
    group.add_argument(
        "--find-date",
        action="store_true",
        help="find the day on which published text was extracted: try each day from --date on until the "
        "first extracted file, or first text part, has the md5 in --table (default extractor: mlperf)",
    )
    group.add_argument(
        "--table",
        metavar="NAME|FILE",
        help="table of published md5s, as for verify-md5: mlperf-v1.0, or a .tsv file with the columns "
        "label, bytes, md5 and paths",
    )
    group.add_argument(
        "--until",
        type=parse_day,
        metavar="YYYY-MM-DD",
        help="with --find-date: last day to try (default: three years after --date)",
    )
    group.add_argument("--punkt-tables", metavar="DIR|URL", help=PUNKT_TABLES_HELP)


def run(arguments: list[str]) -> int:
    """Run ``bertdata extract`` and return the exit status."""
    parser = make_parser()
    args = parser.parse_args(arguments)
    args.dump = find_single_dump(args.dump, "bertdata extract")
    if args.find_date:
        return run_find_date(parser, args)
    for name in FIND_DATE_FLAGS:
        if getattr(args, name) is not None:
            parser.error(f"--{name.replace('_', '-')} goes with --find-date")
    if args.output is None:
        parser.error("the following arguments are required: --output")
    if args.dry_run:
        preview = preview_extraction(
            args.dump,
            args.output,
            read_extract_settings(args, extractor=find_recipe_extractor(args.recipe)),
            args.engine,
        )
        say(*preview, NOTHING_WRITTEN)
        return 0
    with StepProgressDisplay(tenths=True) as progress:
        report = extract(
            args.dump,
            args.output,
            recipe=args.recipe,
            extractor=args.extractor,
            date=args.date,
            templates=args.templates,
            skip_page=args.skip_page or (),
            engine=args.engine,
            workers=args.workers,
            progress=progress,
        )
    for warning in report.warnings():
        say_error(f"bertdata: warning: {args.dump}: {warning}")
    say(*report.lines())
    return 0


def run_find_date(parser: Parser, args: argparse.Namespace) -> int:
    """Search for the day of the Wikipedia dump that a published text comes from.

    Return 0 if the day was found, otherwise 1.
    """
    if args.table is None:
        parser.error("--find-date needs --table, which has the md5 to find")
    if args.output is not None:
        parser.error("--output does not go with --find-date, which writes nothing")
    from bertdata.steps.find_date import (
        find_date,
    )  # imported here because it imports the sentence splitting, which extraction does not need

    with StepProgressDisplay(tenths=True) as progress:
        found = find_date(
            args.dump,
            table=args.table,
            extractor=args.extractor or (args.recipe and find_recipe_extractor(args.recipe)),
            date=args.date,
            until=args.until,
            templates=args.templates,
            skip_page=tuple(args.skip_page or ()),
            punkt_tables=args.punkt_tables,
            engine=args.engine,
            workers=args.workers,
            progress=progress,
        )
    say(*found.lines())
    return 0 if found.days else 1
