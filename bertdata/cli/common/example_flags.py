"""Command-line flags for the settings of a dataset and of its examples."""

import argparse
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, get_type_hints

from bertdata.cli.common.parser import NUMBERS
from bertdata.cli.common.request_flags import add_flags
from bertdata.config.recipes import RECIPES
from bertdata.config.settings import ExampleSettings
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.steps.create_request import GivenDatasetSettings

_TOKENIZERS = ("vocab", "tokenizer")
"""Fields of ``GivenDatasetSettings`` that name a tokeniser. The user can give only one of them."""
_SHARES = ("masked_lm_prob", "short_seq_prob", "mask_share", "random_share", "kept_share", "geometric_p")
"""Settings between 0 and 1. The help shows SHARE as the value of their flags."""


def add_create_flags(
    parser: argparse.ArgumentParser, arguments: Sequence[str], **changed: dict[str, Any]
) -> None:
    """Add the flags of ``bertdata create``, which are also the flags of the Beam pipeline.

    arguments: the command line. If it names an objective, the flags of this objective's settings are added.
    changed: for each field name, keyword arguments of ``add_argument`` that replace those that the field
        declares.
    """
    # With --config, the file may name the tokenizer, so the command line need not.
    tokenizers = parser.add_mutually_exclusive_group(required=not has_config(arguments))
    for item in fields(GivenDatasetSettings):
        place = tokenizers if item.name in _TOKENIZERS else parser
        add_flags(place, GivenDatasetSettings, item.name, **changed.get(item.name, {}))
    add_settings(parser, arguments)


def has_config(arguments: Sequence[str]) -> bool:
    """Return True if the command line has ``--config``."""
    return any(word == "--config" or word.startswith("--config=") for word in arguments)


def add_settings(parser: argparse.ArgumentParser, arguments: Sequence[str] = ()) -> None:
    """Add a flag for each setting of examples. The value of a flag overrides the recipe's setting.

    The help lists a setting that belongs to only one objective in a group for this objective.

    arguments: the command line. If it names a user's own objective, the flags of its settings are added too.
    """
    # Several objectives may declare the same setting, which gets only one flag. The declaration that comes
    # last describes the flag, but the flag keeps its first place in the help.
    flags: dict[str, tuple[Field[Any], type[Any]]] = {}
    for kind in _list_settings_types(arguments):
        hints = get_type_hints(kind)
        flags |= {item.name: (item, hints[item.name]) for item in fields(kind)}
    group = parser.add_argument_group(
        "settings of examples", "each overrides the recipe; see bertdata recipes"
    )
    objectives: dict[str, Any] = {}
    for item, hint in flags.values():
        owner = _find_only_objective(item.name)
        if owner and owner not in objectives:
            objectives[owner] = parser.add_argument_group(f"settings of the objective {owner}")
        _add_flag(objectives[owner] if owner else group, item, hint)
    parser.set_defaults(settings_names=tuple(sorted(flags)))


def _find_only_objective(setting: str) -> str | None:
    """Return the name of the only objective that has this setting.

    Returns None if several objectives have the setting, or only an objective that is not part of bertdata.
    """
    # Map each settings class to the name of an objective. An objective and its variant with word starts share
    # a class, so they count as one. The dictionary is filled in reverse order, so that the first objective of
    # a class gives the name.
    owners = {
        objective.settings_type: name
        for name, objective in reversed(OBJECTIVES.items())
        if setting in objective.settings_type.__dataclass_fields__
    }
    return next(iter(owners.values())) if len(owners) == 1 else None


def _list_settings_types(arguments: Sequence[str]) -> list[type[Any]]:
    """Return the settings classes of all objectives of bertdata, then the class of the chosen objective once
    more.

    If several classes declare a setting, each with its own default and help, the caller uses the last
    declaration. The chosen objective therefore comes last. It is named by ``--objective`` or ``--recipe`` on
    the command line. Otherwise it is bertdata's first objective.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--objective")
    finder.add_argument("--recipe")
    # Words that end with "=--" are left out here, because the command's parser refuses them with a better
    # error.
    words = [word for word in arguments if not word.endswith("=--")]
    given = finder.parse_known_args(words)[0]
    named = given.objective or (RECIPES[given.recipe].objective if given.recipe in RECIPES else None)
    types = [objective.settings_type for objective in OBJECTIVES.values()]
    chosen = types[0] if named is None else find_objective(named).settings_type
    return [*types, chosen]


def _add_flag(group: Any, item: "Field[Any]", kind: type[Any]) -> None:
    """Add the flag of a setting.

    group: group of flags in the help.
    kind: type of the setting's values.
    """
    flag, help = f"--{item.name.replace('_', '-')}", item.metadata["help"]
    if item.name == "objective":
        names = [
            name
            for name, objective in OBJECTIVES.items()
            # Objectives that share their settings with a listed objective, or that are not made from running
            # text, are left out.
            if objective.settings_type is not ExampleSettings and not objective.unlearned
        ]
        help = f"training objective of the examples: {', '.join(names)}, or your own as package.module:NAME"
    if kind is bool and item.default:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, help=help)
    elif kind is bool:
        group.add_argument(flag, action="store_true", default=None, help=help)
    elif item.metadata["choices"]:
        group.add_argument(flag, choices=item.metadata["choices"], help=help)
    else:
        metavar = "SHARE" if item.name in _SHARES else "N" if kind in (int, float) else "NAME"
        group.add_argument(flag, type=NUMBERS.get(kind, kind), metavar=metavar, help=help)
