"""Command-line flags for the settings of extraction and of the text stage."""

import argparse
import datetime
from dataclasses import fields
from typing import Any

from bertdata.text.settings import PUNKT_VARIANTS, TEXT_RECIPES, SegmentSettings
from bertdata.wiki.page_rules import LIMITS
from bertdata.wiki.settings import ExtractSettings

_CHOICES = {"recipe": TEXT_RECIPES, "punkt": PUNKT_VARIANTS}
_METAVARS = {int: "N", float: "X", str: "NAME"}


def add_segment_settings(parser: argparse._ActionsContainer, *, skip: tuple[str, ...] = ()) -> None:
    """A flag for each setting of the text stage but those to skip; None is the value of one not given."""
    for item in fields(SegmentSettings):
        if item.name in skip:
            continue
        flag, help = f"--{item.name.replace('_', '-')}", f"{item.metadata['help']} (default: {item.default})"
        if item.name in _CHOICES:
            parser.add_argument(flag, choices=_CHOICES[item.name], help=help)
        else:
            kind = type(item.default)
            parser.add_argument(flag, type=kind, metavar=_METAVARS[kind], help=help)


def given_segment_settings(args: argparse.Namespace, *, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of the text stage that the command line names, by field."""
    names = [item.name for item in fields(SegmentSettings) if item.name not in skip]
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def add_punkt_tables(parser: argparse._ActionsContainer) -> None:
    """A flag for where the Punkt tables are."""
    parser.add_argument(
        "--punkt-tables",
        metavar="DIR|URL",
        help="where NLTK's English punkt_tab tables are, checked by md5 (default: found as bertdata fetch "
        "punkt does, by each worker)",
    )


def add_extract_settings(parser: argparse._ActionsContainer) -> None:
    """The flags of extraction."""
    parser.add_argument(
        "--date",
        type=_day,
        metavar="YYYY-MM-DD",
        help="the day that {{CURRENTDAY}} and its relatives expand to (default: the dump's own date)",
    )
    parser.add_argument(
        "--no-templates",
        action="store_true",
        help="expand no templates: one pass over the dump less, but what templates say is left out",
    )
    parser.add_argument(
        "--skip-page",
        action="append",
        type=_page_id,
        metavar="ID",
        help="leave out the page of this id, an article or a template; repeatable. Extraction ends with an "
        f"error at a page that takes more than {LIMITS.cpu_seconds:g} CPU seconds or "
        f"{LIMITS.memory_bytes >> 30} GiB of memory",
    )


def given_extract_settings(args: argparse.Namespace) -> ExtractSettings:
    return ExtractSettings(
        date=args.date, templates=not args.no_templates, skip_pages=tuple(args.skip_page or ())
    )


def _page_id(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty, expected the id of a page")
    return text


def _day(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date, expected YYYY-MM-DD") from None
