"""Command-line flags for the settings of ``segment``, which splits text into parts with one sentence per
line.
"""

import argparse
from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from bertdata.cli.common.parser import NUMBERS
from bertdata.sources.settings import RecordSettings
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import PUNKT_NAMES, TEXT_RECIPES, YES_NO, SegmentSettings

LANGUAGE_SETTINGS = ("language", "punkt", "abbreviations")
"""Settings of ``SegmentSettings`` that apply to every kind of input, also to records (such as lines of JSON).
"""
_PART_FIELDS = ("part_size", "sentences")
_CHOICES = {"recipe": TEXT_RECIPES, "punkt": PUNKT_NAMES}
_METAVARS = {
    "block_size": "MIB",
    "part_size": "MIB",
    "test_fraction": "SHARE",
    "language": "CODE",
    "abbreviations": "FILE",
    "text_field": "FIELD",
    "id_field": "FIELD",
    "language_field": "FIELD",
    "keep_languages": "CODES",
    "max_record_bytes": "BYTES",
    "separator": "CHARACTER",
    "exclude": "FILE",
    "eval_share": "P%",
}
"""Names that the help shows for the values of settings. Other settings show NAME for a text and N for a
number.
"""


def add_language_settings(parser: argparse._ActionsContainer) -> None:
    """Add --language and --escaped-articles, for commands that read records (such as lines of JSON)."""
    parser.add_argument(
        "--language", metavar="CODE", help="language of the text, an ISO 639-1 code (default: en)"
    )
    (item,) = (item for item in fields(SegmentSettings) if item.name == "escaped_articles")
    parser.add_argument(
        "--escaped-articles", choices=YES_NO, metavar="|".join(YES_NO), help=item.metadata["help"]
    )


def add_segment_settings(
    parser: argparse._ActionsContainer, *, skip: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> None:
    """Add a flag for each field of ``SegmentSettings``. If the user does not give a flag, its value is None.

    skip: names of fields that get no flag.
    only: names of the fields that get a flag. If it is empty, all fields do.
    """
    for item in fields(SegmentSettings):
        if item.name in skip or (only and item.name not in only):
            continue
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        if item.default is None:
            choices = item.metadata["choices"] or None
            metavar = "|".join(choices) if choices else _METAVARS[item.name]
            parser.add_argument(flag, choices=choices, metavar=metavar, help=help)
            continue
        help = f"{help} (default: {item.default})"
        if item.name in _CHOICES:
            parser.add_argument(flag, choices=_CHOICES[item.name], help=help)
        else:
            kind = type(item.default)
            metavar = _choose_metavar(item)
            parser.add_argument(flag, type=NUMBERS.get(kind, kind), metavar=metavar, help=help)


def add_part_settings(parser: argparse._ActionsContainer) -> None:
    """Add the flags for settings of parts that are made from records.

    Flags that are not given have the value None.
    """
    items = [item for item in fields(PartSettings) if item.name in _PART_FIELDS]
    _add_flags(parser, (*items, *fields(RecordSettings), *fields(SelectionSettings)))


def add_record_settings(parser: argparse._ActionsContainer) -> None:
    """Add --keep-languages and a flag for each field of ``RecordSettings``. If the user does not give a flag,
    its value is None.
    """
    keep = [item for item in fields(SelectionSettings) if item.name == "keep_languages"]
    _add_flags(parser, (*fields(RecordSettings), *keep))


def _add_flags(parser: argparse._ActionsContainer, items: Iterable[Field[Any]]) -> None:
    """Add a flag for each field. The type of a field's default decides which values the flag accepts."""
    for item in items:
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        choices = item.metadata["choices"] or None
        metavar = None if choices else _choose_metavar(item)
        if item.default is False:
            parser.add_argument(flag, action="store_true", default=None, help=help)
        elif item.default == ():
            parser.add_argument(flag, action="append", metavar=metavar, help=help)
        elif item.default is None:
            parser.add_argument(flag, choices=choices, metavar=metavar, help=help)
        else:
            help, kind = f"{help} (default: {item.default})", type(item.default)
            parser.add_argument(
                flag, type=NUMBERS.get(kind, kind), choices=choices, metavar=metavar, help=help
            )


def _choose_metavar(item: Field[Any]) -> str:
    """Return the name that the help shows for the value of a field's flag."""
    return _METAVARS.get(item.name, "N" if isinstance(item.default, int | float) else "NAME")
