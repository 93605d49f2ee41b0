"""Entries read back from JSON: of the declared types, or refused by name."""

from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from bertdata.errors import ManifestError
from bertdata.io.entry_json import parse_entry, parse_entry_list, parse_number_list


@dataclass(frozen=True, kw_only=True)
class Tin:
    """A field of each kind."""

    name: str
    bytes: int
    colour: str | None = None
    faults: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


TIN = Tin(name="ü", bytes=0, faults=["rust"], counts={"dents": 3})


def test_an_entry_is_read_as_it_was_written() -> None:
    assert parse_entry(Tin, asdict(TIN)) == TIN
    assert parse_entry(Tin, {**asdict(TIN), "colour": "red"}).colour == "red"
    assert parse_entry_list(Tin, [asdict(TIN)] * 2) == [TIN, TIN]
    assert parse_number_list([0, 5]) == [0, 5]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", None),
        ("name", 5),
        ("name", "\ud800"),
        ("bytes", -1),
        ("bytes", True),
        ("bytes", 1.0),
        ("bytes", "1"),
        ("bytes", 1 << 63),
        ("colour", 5),
        ("faults", "rust"),
        ("faults", [5]),
        ("counts", []),
        ("counts", {"dents": "3"}),
    ],
)
def test_a_field_of_another_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(ManifestError, match=f"^{name} is .*, expected "):
        parse_entry(Tin, {**asdict(TIN), name: value})


@pytest.mark.parametrize("value", [None, [], "x", {}, {"name": "x"}, {**asdict(TIN), "more": 1}])
def test_other_fields_than_the_declared_are_refused(value: Any) -> None:
    with pytest.raises(ManifestError, match="expected an object of bytes, colour, counts, faults, name"):
        parse_entry(Tin, value)


@pytest.mark.parametrize("value", [None, {}, "x", 5])
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(ManifestError, match="expected a list, found"):
        parse_entry_list(Tin, value)
    with pytest.raises(ManifestError, match="expected a list of numbers, found"):
        parse_number_list(value)
    with pytest.raises(ManifestError, match="expected a list of numbers, found"):
        parse_number_list([0, value, -1])
