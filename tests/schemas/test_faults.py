"""The check of values against schemas finds what the package jsonschema finds."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import load_schema
from schemas.faults import faults, first_fault
from tests.support.paths import ROOT

NAMES = sorted(path.stem for path in (ROOT / "schemas").glob("*.json"))

NOT_A_NUMBER = float("nan")

names = st.sampled_from(["a", "b", "c", "0", "12", "x1"])
numbers = st.integers(-3, 12) | st.sampled_from([0.0, 0.5, 1.0, -0.25, 7.0, 1e9, NOT_A_NUMBER])
scalars = st.none() | st.booleans() | numbers | st.sampled_from(["", "a", "bb", "0123", "none"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
kinds = st.sampled_from(["integer", "number", "boolean", "string", "object", "array", "null"])
bounds = st.sampled_from([0, 1, 0.5, 7])


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    """A schema of the keywords that are known, but for $ref."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.booleans())
    parts: dict[str, st.SearchStrategy[Any]] = {
        "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
        "enum": st.lists(scalars, min_size=1, max_size=3),
        "const": scalars,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "minLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "^[0-9]+$", "b"]),
        "required": st.lists(names, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        **dict.fromkeys(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], bounds),
    }
    if depth:
        inner = schemas(depth - 1)
        # A part is no bare true or false here, but for additionalProperties.
        whole = inner.filter(lambda schema: not isinstance(schema, bool))
        parts |= {
            "properties": st.dictionaries(names, whole, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^x", "[0-9]"]), whole, max_size=1),
            "additionalProperties": whole | st.booleans(),
            "items": whole,
            "propertyNames": whole,
            "allOf": st.lists(whole, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
        }
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), max_size=4, unique=True))
    return {keyword: draw(parts[keyword]) for keyword in chosen}


def ours(value: Any, schema: Any) -> list[tuple[Any, ...]]:
    return [(fault.path, fault.keyword, fault.message) for fault in faults(value, schema)]


def theirs(value: Any, schema: Any) -> list[tuple[Any, ...]]:
    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return [(tuple(error.absolute_path), error.validator or "", error.message) for error in found]


@given(values, schemas())
def test_the_faults_are_jsonschemas(value, schema):
    assert sorted(ours(value, schema), key=str) == sorted(theirs(value, schema), key=str)


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
def test_a_changed_example_of_each_schema_has_jsonschemas_faults(name, data):
    schema = load_schema(name)
    known = [*schema.get("properties", {}), "unknown"]
    value = data.draw(st.dictionaries(st.sampled_from(known), values, max_size=5))
    if "anyOf" not in json.dumps(schema):
        assert sorted(ours(value, schema), key=str) == sorted(theirs(value, schema), key=str)
    assert bool(ours(value, schema)) == bool(theirs(value, schema))


@pytest.mark.parametrize("name", NAMES)
def test_no_schema_has_a_keyword_that_is_not_checked(name):
    checked = {
        *faults.__globals__["_CHECKS"],
        *faults.__globals__["_APPLIED"],
        "$ref",
        "anyOf",
        "if",
        "then",
        "else",
    }
    standard = set(jsonschema.Draft202012Validator.VALIDATORS)

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            assert [keyword for keyword in schema if keyword in standard - checked - {"format"}] == []
            for keyword in ("properties", "patternProperties", "$defs"):
                for part in schema.get(keyword, {}).values():
                    walk(part)
            for keyword in ("items", "additionalProperties", "propertyNames", "if", "then", "else"):
                walk(schema.get(keyword))
            for part in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
                walk(part)

    walk(load_schema(name))


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"a": {"b": 1}, "c": -1}, ("c",), "-1 is less than the minimum of 0"),
        ({"a": {"b": "x"}}, ("a", "b"), "'x' is not of type 'integer'"),
        ({"c": 0}, (), "'a' is a required property"),
    ],
)
def test_the_first_fault_is_the_one_nearest_to_the_top(value, path, message):
    schema = {
        "required": ["a"],
        "properties": {"a": {"properties": {"b": {"type": "integer"}}}, "c": {"minimum": 0}},
    }
    found = first_fault(value, schema)
    assert found is not None
    assert (found.path, found.message) == (path, message)
    assert first_fault({"a": {}}, schema) is None
