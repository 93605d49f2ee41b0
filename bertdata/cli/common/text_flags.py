"""Command-line flags for the settings of the text stage."""

import argparse
from dataclasses import fields
from typing import Any

from bertdata.text.input_kinds import KINDS
from bertdata.text.settings import PUNKT_NAMES, TEXT_RECIPES, SegmentSettings

_CHOICES = {"recipe": TEXT_RECIPES, "punkt": PUNKT_NAMES}
INPUT_KIND_HELP = """\
articles (default): extracted files; text: plain-text files (of a directory, *.txt), each one document"""
BOOKS_HELP = """\
plain-text files, each one document, or a directory of them (*.txt), beside articles: they are read first, as
NVIDIA's and Habana's wiki_books does; may be repeated"""
_METAVARS = {int: "N", float: "X", str: "NAME"}


def add_input_kind(parser: argparse._ActionsContainer) -> None:
    """The flag for the kind of the input files."""
    parser.add_argument("--input-kind", choices=tuple(KINDS), default="articles", help=INPUT_KIND_HELP)


def add_books(parser: argparse._ActionsContainer) -> None:
    """The flag for plain-text files beside other input."""
    parser.add_argument("--books", action="append", default=[], metavar="FILE|DIR", help=BOOKS_HELP)


def add_segment_settings(parser: argparse._ActionsContainer, *, skip: tuple[str, ...] = ()) -> None:
    """A flag for each setting of the text stage but those to skip. None is the value of one not given."""
    for item in fields(SegmentSettings):
        if item.name in skip:
            continue
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        if item.default is None:
            parser.add_argument(flag, metavar="FILE", help=help)
            continue
        help = f"{help} (default: {item.default})"
        if item.name in _CHOICES:
            parser.add_argument(flag, choices=_CHOICES[item.name], help=help)
        else:
            kind = type(item.default)
            parser.add_argument(flag, type=kind, metavar=_METAVARS[kind], help=help)


def given_segment_settings(args: argparse.Namespace, *, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """The settings of the text stage that the command line names, by field. Of abbreviations their file."""
    names = [item.name for item in fields(SegmentSettings) if item.name not in skip]
    return {name: value for name in names if (value := getattr(args, name)) is not None}
