"""Command-line flags for the recipe and for each of its settings."""

import argparse
from dataclasses import fields
from typing import Any

from bertdata.config.dialects import DIALECTS
from bertdata.config.recipes import FORMATS, RECIPES, ExampleSettings

_SWITCHES = ("whole_word_mask", "remask")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The recipe, and a flag for each setting that overrides it."""
    parser.add_argument("--recipe", choices=tuple(RECIPES), help="whose data set to make (default: mlperf)")
    parser.add_argument(
        "--phase", type=int, metavar="N", help="only this phase of the recipe, into DIR itself"
    )
    group = parser.add_argument_group("settings", "each overrides the recipe's; see bertdata recipes")
    for item in fields(ExampleSettings):
        flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
        if item.name == "lower_case":
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=help)
        elif item.name in _SWITCHES:
            group.add_argument(flag, action="store_true", default=None, help=help)
        elif item.name == "dialect":
            group.add_argument(flag, choices=tuple(DIALECTS), help=help)
        elif item.name == "format":
            group.add_argument(flag, choices=FORMATS, help=help)
        else:
            kind = float if item.name.endswith("prob") else int
            group.add_argument(flag, type=kind, metavar=kind.__name__.upper(), help=help)


def given_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line names, by field."""
    return {
        item.name: value
        for item in fields(ExampleSettings)
        if (value := getattr(args, item.name)) is not None
    }
