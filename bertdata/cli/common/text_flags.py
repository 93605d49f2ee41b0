"""Command-line flags for the settings of the text stage."""

import argparse
from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from bertdata.cli.common.parser import NUMBERS
from bertdata.sources.settings import RecordSettings
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import PUNKT_NAMES, TEXT_RECIPES, YES_NO, SegmentSettings

_PART_FIELDS = ("part_size", "sentences")
_CHOICES = {"recipe": TEXT_RECIPES, "punkt": PUNKT_NAMES}
SHARED_FLAGS = ("input_kind", "language", "escaped_articles")
"""Flags of commands that read sources of records in place of parts, beside those of records."""
_NAMES = {"dedup": "exact", "eval_share": "P%"}
_METAVARS = {int: "N", float: "X", str: "NAME"}


def add_language_settings(parser: argparse._ActionsContainer) -> None:
    """The flags of text that commands share which read sources of records in place of parts."""
    parser.add_argument("--language", metavar="CODE", help="language of the text, as segment takes it")
    (item,) = (item for item in fields(SegmentSettings) if item.name == "escaped_articles")
    parser.add_argument(
        "--escaped-articles", choices=YES_NO, metavar="|".join(YES_NO), help=item.metadata["help"]
    )


def add_segment_settings(parser: argparse._ActionsContainer, *, skip: tuple[str, ...] = ()) -> None:
    """A flag for each setting of the text stage but those to skip. None is the value of one not given."""
    for item in fields(SegmentSettings):
        if item.name in skip:
            continue
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        if item.default is None:
            choices = item.metadata["choices"] or None
            metavar = "|".join(choices) if choices else "FILE"
            parser.add_argument(flag, choices=choices, metavar=metavar, help=help)
            continue
        help = f"{help} (default: {item.default})"
        if item.name in _CHOICES:
            parser.add_argument(flag, choices=_CHOICES[item.name], help=help)
        else:
            kind = type(item.default)
            parser.add_argument(flag, type=NUMBERS.get(kind, kind), metavar=_METAVARS[kind], help=help)


def add_part_settings(parser: argparse._ActionsContainer) -> None:
    """A flag for each setting that parts of records alone have. None is the value of one not given."""
    items = [item for item in fields(PartSettings) if item.name in _PART_FIELDS]
    _add(parser, (*items, *fields(RecordSettings), *fields(SelectionSettings)))


def add_record_settings(parser: argparse._ActionsContainer) -> None:
    """A flag for each setting by which records are read. None is the value of one not given."""
    _add(parser, fields(RecordSettings))


def _add(parser: argparse._ActionsContainer, items: Iterable[Field[Any]]) -> None:
    for item in items:
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        choices = item.metadata["choices"] or None
        if item.default is False:
            parser.add_argument(flag, action="store_true", default=None, help=help)
        elif item.default == ():
            parser.add_argument(flag, action="append", metavar="FILE", help=help)
        elif item.default is None:
            parser.add_argument(flag, choices=choices, metavar=_NAMES.get(item.name, "NAME"), help=help)
        else:
            help, kind = f"{help} (default: {item.default})", type(item.default)
            metavar = None if choices else _METAVARS[kind]
            parser.add_argument(
                flag, type=NUMBERS.get(kind, kind), choices=choices, metavar=metavar, help=help
            )


def given_record_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings by which records are read that the command line names, by field."""
    return {i.name: value for i in fields(RecordSettings) if (value := getattr(args, i.name)) is not None}
