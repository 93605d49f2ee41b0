"""The id of a record is its source's text, whatever parser reads it."""

import json
from pathlib import Path

import pytest

from bertdata.sources import json_lines
from bertdata.sources.json_lines import find_member_source
from tests.support.commands import Program
from tests.support.read_records import read_records

IDS = {
    "18446744073709551616": "18446744073709551616",
    "18446744073709551617": "18446744073709551617",
    "-9223372036854775809": "-9223372036854775809",
    "7": "7",
    "0": "0",
    "-0": "-0",
    "1.50": "1.50",
    "1e5": "1e5",
    "1E400": "1E400",
    "0.1000000000000000055511151231257827": "0.1000000000000000055511151231257827",
    "true": "true",
    '"a\\u00e9\\n"': "aé\n",
    '{"$oid" : "5f"}': '{"$oid" : "5f"}',
    "NaN": "NaN",
    "1" * 5000: "1" * 5000,
}


@pytest.fixture(params=["orjson", "json"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "json":
        monkeypatch.setattr(json_lines, "orjson", None)
    else:
        pytest.importorskip("orjson")


@pytest.mark.usefixtures("parser")
def test_an_id_is_what_stands_in_the_source(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [f'{{"id": 5, "text": "A b.", "of": {{"id" : {value} }}, "id": {value}}}' for value in IDS]
    path.write_text("\n".join(lines), encoding="utf-8")
    for field in ("id", "of.id"):  # of two members of a name the last one counts
        found = read_records(path, id_field=field, text_field="text")
        assert [one.id for one in found] == list(IDS.values())
        assert {getattr(one, "text", None) for one in found} == {"A b."}


@pytest.mark.usefixtures("parser")
def test_an_id_that_is_null_or_missing_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": null, "text": "A."}\n{"text": "B."}\n')
    assert [one.id for one in read_records(tmp_path / "a.jsonl", id_field="id", text_field="text")] == [
        None,
        None,
    ]


def test_ids_of_removed_records_do_not_depend_on_the_parser(
    bertdata: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ids that one parser rounds to 1.8446744073709552e+19."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id":1844674407370955161{end},"text":"A b."}}\n' for end in (6, 7)))
    removed = []
    for name in ("one", "two"):
        flags = ("--output", tmp_path / name, "--id-field", "id", "--text-field", "text", "--dedup", "exact")
        outcome = bertdata("segment", path, *flags, "--sentences", "none", "--workers", 1)
        assert outcome.status == 0, outcome.err
        removed.append((tmp_path / name / "removed.jsonl").read_bytes())
        monkeypatch.setattr(json_lines, "orjson", None)
    assert json.loads(removed[0])["id"] == "18446744073709551617"
    assert removed[0] == removed[1]


def test_a_member_is_found_among_blanks_and_names_with_dots() -> None:
    text = ' { "a" : [ {"a": 1} ] ,\n"b.c" : 1.0 , "b" : { "c" : "}" } } '
    assert [find_member_source(text, name) for name in ("a", "b.c", "b")] == [
        '[ {"a": 1} ]',
        "1.0",
        '{ "c" : "}" }',
    ]
