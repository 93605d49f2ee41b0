"""Command-line flags for the settings of extraction."""

import argparse
import datetime

from bertdata.wiki.page_rules import LIMITS, MAX_WORK
from bertdata.wiki.settings import EXTRACTORS, SPELLINGS, VERSIONS, ExtractorName, ExtractSettings


def add_extract_settings(
    parser: argparse._ActionsContainer, *, extractor_default: str = "default: 3.1.0"
) -> None:
    """The flags of extraction."""
    parser.add_argument(
        "--extractor",
        choices=(*EXTRACTORS, *SPELLINGS),
        help="the program whose text it is: wikiextractor 3.1.0, or mlperf, also spelt 2.75, the older "
        f"version that MLPerf's published data were made with (commit {VERSIONS['mlperf'][:7]}) and that "
        f"NVIDIA's and Habana's scripts pin (6408a430, the same text) ({extractor_default})",
    )
    parser.add_argument(
        "--date",
        type=day,
        metavar="YYYY-MM-DD",
        help="the day that {{CURRENTDAY}} and its relatives expand to (default: the dump's own date)",
    )
    parser.add_argument(
        "--templates",
        action=argparse.BooleanOptionalAction,
        help="whether templates are expanded, for which the dump's definitions are read first (default: as "
        "the program does: 3.1.0 does, 2.75 does not)",
    )
    parser.add_argument(
        "--skip-page",
        action="append",
        type=_page_id,
        metavar="ID",
        help="leave out the page of this id, an article or a template; repeatable. Extraction ends with an "
        f"error at a page that takes too much work (native: {MAX_WORK >> 30} GiB of text handled; python: "
        f"{LIMITS.cpu_seconds:g} CPU seconds or {LIMITS.memory_bytes >> 30} GiB of memory)",
    )


def given_extract_settings(
    args: argparse.Namespace, *, extractor: ExtractorName = "3.1.0"
) -> ExtractSettings:
    """The settings that the command line gives. extractor: where no flag names one."""
    return ExtractSettings(
        extractor=args.extractor or extractor,
        date=args.date,
        templates=args.templates,
        skip_pages=tuple(args.skip_page or ()),
    )


def _page_id(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty, expected the id of a page")
    return text


def day(text: str) -> datetime.date:
    """The day that a flag gives."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date, expected YYYY-MM-DD") from None
