"""Command-line flags of a dataset, and of the settings of its examples."""

import argparse
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, get_type_hints

from bertdata.cli.common.parser import NUMBERS
from bertdata.cli.common.request_flags import add_flags
from bertdata.config.recipes import RECIPES
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.steps.create_request import GivenDatasetSettings

_TOKENIZERS = ("vocab", "tokenizer")
"""The settings of a dataset of which a command line names one."""


def add_create_flags(
    parser: argparse.ArgumentParser, arguments: Sequence[str], **changed: dict[str, Any]
) -> None:
    """Add the flags of a dataset and of its examples, which the command and the pipeline both have.

    changed: for the flag of a field, what argparse takes in place of the field's.
    """
    tokenizers = parser.add_mutually_exclusive_group(required=not names_config(arguments))
    for item in fields(GivenDatasetSettings):
        place = tokenizers if item.name in _TOKENIZERS else parser
        add_flags(place, GivenDatasetSettings, item.name, **changed.get(item.name, {}))
    add_settings(parser, arguments)


def names_config(arguments: Sequence[str]) -> bool:
    """True where a command line names a file of settings."""
    return any(word == "--config" or word.startswith("--config=") for word in arguments)


def add_settings(parser: argparse.ArgumentParser, arguments: Sequence[str] = ()) -> None:
    """A flag for each setting of examples, which overrides the recipe's.

    arguments: the command line, which may name an objective of one's own; its settings have flags too.
    """
    group = parser.add_argument_group("settings", "each overrides the recipe's; see bertdata recipes")
    flags: dict[str, tuple[Field[Any], type[Any]]] = {}
    for kind in _settings_types(arguments):
        hints = get_type_hints(kind)
        flags |= {item.name: (item, hints[item.name]) for item in fields(kind)}
    for item, hint in flags.values():
        _add_flag(group, item, hint)
    parser.set_defaults(settings_names=tuple(sorted(flags)))


def _settings_types(arguments: Sequence[str]) -> list[type[Any]]:
    """The settings of the package's objectives.

    Of settings with one name the last one's form counts: that of the objective which the command line names,
    by itself or by a recipe, else of the package's first.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--objective")
    finder.add_argument("--recipe")
    words = [word for word in arguments if not word.endswith("=--")]  # the command's parser refuses these
    given = finder.parse_known_args(words)[0]
    named = given.objective or (RECIPES[given.recipe].objective if given.recipe in RECIPES else None)
    types = [objective.settings_type for objective in OBJECTIVES.values()]
    chosen = types[0] if named is None else find_objective(named).settings_type
    return [*types, chosen]


def _add_flag(group: Any, item: "Field[Any]", kind: type[Any]) -> None:
    flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
    if kind is bool and item.default:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, help=help)
    elif kind is bool:
        group.add_argument(flag, action="store_true", default=None, help=help)
    elif item.metadata["choices"]:
        group.add_argument(flag, choices=item.metadata["choices"], help=help)
    else:
        metavar = "NAME" if kind is str else kind.__name__.upper()
        group.add_argument(flag, type=NUMBERS.get(kind, kind), metavar=metavar, help=help)
