"""Finds an objective by its name, or by the import path of an objective defined outside this package."""

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


def find_plain_objective_name(name: str) -> str:
    """Return the plain objective of a variant with word starts: ``mlm`` for ``mlm_word_starts``.

    ``create --no-masks`` stores this variant if the ids do not show where words start, although the user
    asked for the plain objective. Any other name is returned unchanged.
    """
    return next((plain for plain, objective in OBJECTIVES.items() if objective.of_words == name), name)


def describe_objective(name: str) -> str:
    """Return an objective's name as messages show it, for example ``mlm (stored as mlm_word_starts)``.

    Only the names of variants with word starts get an addition in brackets.
    """
    plain = find_plain_objective_name(name)
    return name if plain == name else f"{plain} (stored as {name})"


@cache
def find_objective(name: str) -> Objective:
    """Return the objective with this name. A name of the form ``package.module:NAME`` is imported.

    Worker processes find the objective by its name, so only the name has to be sent to them. Raises
    SettingsError if there is no such object, or if it is not an Objective.
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
    """Import the object that a name of the form ``package.module:NAME`` stands for.

    kind: what a SettingsError calls the object, such as "objective".
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"{kind} {name!r}: {error}") from None


def find_objective_of_file(name: str, where: str) -> Objective:
    """Return the objective whose name was read from a file.

    The objective must belong to this package or be imported already. Nothing is imported here, because a file
    must not choose code to run. The SettingsError says how the user can import the objective.

    where: the file, for the message.
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
