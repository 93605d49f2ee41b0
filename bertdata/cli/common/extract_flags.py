"""Command-line flags for the settings of ``extract``, which extracts articles from a Wikipedia dump."""

import argparse
import datetime

from bertdata.wiki.page_rules import LIMITS, MAX_WORK
from bertdata.wiki.settings import EXTRACTORS, SPELLINGS, VERSIONS, ExtractorName, ExtractSettings


def add_extract_settings(
    parser: argparse._ActionsContainer, *, extractor_default: str = "default: 3.1.0"
) -> None:
    """Add the flags for the settings of article extraction.

    extractor_default: text that the help shows as the default of --extractor.
    """
    parser.add_argument(
        "--extractor",
        choices=(*EXTRACTORS, *SPELLINGS),
        help="version of wikiextractor whose text to reproduce: 3.1.0, or 2.75, which is also called mlperf "
        f"({extractor_default}). MLPerf's published data were made with commit {VERSIONS['mlperf'][:7]} of "
        "version 2.75. NVIDIA's and Habana's scripts use commit 6408a430, which gives the same text",
    )
    parser.add_argument(
        "--date",
        type=parse_day,
        metavar="YYYY-MM-DD",
        help="day that {{CURRENTDAY}} and similar words expand to (default: the date of the dump)",
    )
    parser.add_argument(
        "--templates",
        action=argparse.BooleanOptionalAction,
        help="expand templates, which reads the whole dump first for their definitions (default: expanded "
        "with 3.1.0, not with 2.75)",
    )
    parser.add_argument(
        "--skip-page",
        action="append",
        type=_parse_page_id,
        metavar="ID",
        help="leave out the article or template whose page has this id; may be repeated. Meant for a page "
        "that exceeds a limit and so ends the extraction with an error. Limits for a page: with --engine "
        f"native {MAX_WORK >> 30} GiB of text handled, with --engine python {LIMITS.cpu_seconds:g} CPU "
        f"seconds or {LIMITS.memory_bytes >> 30} GiB of memory",
    )


def read_extract_settings(args: argparse.Namespace, *, extractor: ExtractorName = "3.1.0") -> ExtractSettings:
    """Return the settings of article extraction from a parsed command line.

    extractor: name of the extractor to use if the command line has no --extractor.
    """
    return ExtractSettings(
        extractor=args.extractor or extractor,
        date=args.date,
        templates=args.templates,
        skip_pages=tuple(args.skip_page or ()),
    )


def _parse_page_id(text: str) -> str:
    """Convert the text of a flag's value to a page id, for argparse. An empty text is refused."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, expected the id of a page")
    return text


def parse_day(text: str) -> datetime.date:
    """Convert the text of a flag's value to a date, for argparse."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date, expected YYYY-MM-DD") from None
