"""Finds objectives by name: the package's objectives, and others by import path."""

import sys
from functools import cache
from importlib import import_module
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.bert.objective import BERT, BERT_OF_WORDS
from bertdata.examples.classification.objective import CLASSIFICATION, REGRESSION
from bertdata.examples.electra.objective import ELECTRA
from bertdata.examples.mlm.objective import MLM, MLM_OF_WORDS
from bertdata.examples.objective import Objective
from bertdata.examples.sop.objective import SOP
from bertdata.examples.span.objective import SPAN, SPAN_OF_WORDS
from bertdata.examples.squad.objective import SQUAD

OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        BERT,
        MLM,
        SOP,
        ELECTRA,
        SPAN,
        BERT_OF_WORDS,
        MLM_OF_WORDS,
        SPAN_OF_WORDS,
        SQUAD,
        CLASSIFICATION,
        REGRESSION,
    )
}
"""The objectives of this package, by name."""
_CHOICES = ", ".join(name for name, objective in OBJECTIVES.items() if not objective.unlearned)


def without_word_starts(name: str) -> str:
    """Return the objective that ``create`` was asked for: ``mlm`` if ``name`` is ``mlm_word_starts``.

    ``create --no-masks`` stores the word-start variant if the ids do not show where words start. A name that
    is not such a variant is returned unchanged.
    """
    return next((plain for plain, objective in OBJECTIVES.items() if objective.of_words == name), name)


def describe_objective(name: str) -> str:
    """Return how to show an objective's name to a reader, for example ``mlm (stored as mlm_word_starts)``.

    A name that is not the word-start variant of another objective is returned unchanged.
    """
    plain = without_word_starts(name)
    return name if plain == name else f"{plain} (stored as {name})"


@cache
def find_objective(name: str) -> Objective:
    """Return the objective with this name, importing it if the name is ``package.module:NAME``.

    Worker processes find the objective by its name, so nothing else has to be sent to them. SettingsError if
    there is no such object or if it is not an Objective.
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    if ":" not in name:
        raise SettingsError(
            f"objective {name!r} is not known; known are {_CHOICES}, one of your own is package.module:NAME"
        )
    found = import_object("objective", name)
    if not isinstance(found, Objective):
        raise SettingsError(f"objective {name!r}: is no Objective of bertdata.examples.objective")
    if found.name != name:
        raise SettingsError(f"objective {name!r}: its own name is {found.name!r}, expected the same")
    return found


def import_object(kind: str, name: str) -> Any:
    """Import the object that ``package.module:NAME`` names. kind: what a SettingsError calls the object."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{kind} {name!r}: {error}") from None


def find_objective_of_file(name: str, where: str) -> Objective:
    """Return the objective that a file names, if it belongs to this package or was imported already.

    Nothing is imported, because a file must not choose code to run. The SettingsError says how to import the
    objective explicitly.
    """
    module, colon, _ = name.partition(":")
    if name not in OBJECTIVES and not colon:
        raise SettingsError(f"{where}: has the objective {name!r}, which is not known; known are {_CHOICES}")
    if name not in OBJECTIVES and module not in sys.modules:
        raise SettingsError(
            f"{where}: has the objective {name!r}, and no file may choose code to import; "
            f"if you trust that code, give --objective {name}"
        )
    return find_objective(name)
