"""Declared settings: the JSON Schema that follows from a field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bertdata.config.declared import derive_schemas, setting
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A field for each form of a declaration."""

    switch: bool = setting(True, "a switch")
    count: int = setting(3, "a count", least=1, most=9)
    share: float | None = setting(None, "a share", above=0, below=1)
    either: int | float = setting(0, "a count or a share", least=0)
    text: str = setting("x", "a text", keywords={"minLength": 1})
    choice: str = setting("a", "a choice", ("a", "b"), common=True)
    choice_or_none: str | None = setting(None, "a choice or none", ("a", "b"))
    texts: Sequence[str] | None = setting(None, "texts")
    stages: Sequence[Sequence[str]] | None = setting(None, "lists of texts", optional=True)
    one_or_each: float | Sequence[float] | None = setting(None, "one or each", least=0, most=1, optional=True)
    rates: Mapping[str, float] | None = setting(None, "rates", above=0)
    ways: str | None = setting(None, "an optional choice", ("a", "b"), optional=True)
    plain: int = 0
    made: Any = field(default_factory=list)


WANTED = {
    "switch": {"description": "a switch", "default": True, "type": "boolean"},
    "count": {"description": "a count", "default": 3, "type": "integer", "minimum": 1, "maximum": 9},
    "share": {
        "description": "a share",
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    },
    "either": {
        "description": "a count or a share",
        "default": 0,
        "type": "number",
        "minimum": 0,
        "maximum": 1e38,
    },
    "text": {"description": "a text", "default": "x", "type": "string", "minLength": 1},
    "choice": {"common": True, "description": "a choice", "default": "a", "enum": ["a", "b"]},
    "choice_or_none": {"description": "a choice or none", "enum": [None, "a", "b"]},
    "texts": {"description": "texts", "type": ["array", "null"], "items": {"type": "string"}},
    "stages": {
        "description": "lists of texts",
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}},
    },
    "one_or_each": {
        "description": "one or each",
        "type": ["number", "array"],
        "minimum": 0,
        "maximum": 1,
        "items": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "rates": {
        "description": "rates",
        "type": ["object", "null"],
        "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e38},
    },
    "ways": {"description": "an optional choice", "enum": ["a", "b"]},
}


def test_a_declared_field_gives_its_schema_and_a_plain_one_none():
    assert derive_schemas(Settings) == WANTED


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"switch": 1}, "switch is 1, expected true or false"),
        ({"count": 10}, "count is 10, expected at most 9"),
        ({"share": 0}, "share is 0, expected more than 0"),
        ({"text": ""}, "text: '' should be non-empty"),
        ({"choice": "c"}, "choice is 'c', expected one of a, b"),
        ({"one_or_each": [0.5, 2]}, "one_or_each.1 is 2, expected at most 1"),
        ({"rates": {"0": 0}}, "rates.0 is 0, expected more than 0"),
        ({"ways": None}, "ways is None, expected one of a, b"),
    ],
)
def test_a_value_is_held_against_its_declaration(values, message):
    with pytest.raises(SettingsError) as caught:
        check_values(values, derive_schemas(Settings))
    assert str(caught.value) == message


def test_values_that_fit_their_declarations_are_accepted():
    check_values({"share": None, "choice_or_none": None, "either": 2, "count": 9}, derive_schemas(Settings))
