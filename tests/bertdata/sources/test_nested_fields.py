"""Texts within other fields, in lists of paragraphs and in bytes, of JSON, Parquet and Arrow alike."""

import json
from pathlib import Path

import pytest

from bertdata.errors import InputError, SettingsError
from bertdata.text.selection.evaluation_texts import read_evaluation_texts
from tests.support.read_records import faults, texts

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402 - after the check for the package

ROWS = [
    {"paras": ["One.", "Two."], "of": {"body": "Three.", "deep": {"list": ["Four."]}}, "n": 1},
    {"paras": ["Five.", None], "of": {"body": "Six.", "deep": {"list": ["Seven.", "Eight."]}}, "n": 2},
]


def write(directory: Path, form: str, rows: list[dict[str, object]], schema: object = None) -> Path:
    path = directory / f"a.{form}"
    if form == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
        return path
    table = pa.Table.from_pylist(rows, schema=schema)
    if form == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_lists_and_inner_fields_are_texts(form: str, tmp_path: Path) -> None:
    path = write(tmp_path, form, ROWS)
    assert texts(path, text_field="paras") == ["One.\n\nTwo.", "Five."]
    assert texts(path, text_field="of.body") == ["Three.", "Six."]
    assert texts(path, text_field="of.deep.list", id_field="n") == ["Four.", "Seven.\n\nEight."]
    with pytest.raises(SettingsError, match="has no field 'of.none' of texts, expected one of .*'of.body'"):
        texts(path, text_field="of.none")
    found = {"One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven.", "Eight."}
    assert set(read_evaluation_texts(str(path))) == found


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_a_field_of_strings_is_found_before_one_of_lists(form: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": "One.", "tags": ["a"]}, {"text": "Two.", "tags": ["b"]}]
    assert texts(write(tmp_path, form, rows)) == ["One.", "Two."]
    lists: list[dict[str, object]] = [{"paras": ["One."], "n": 1}, {"paras": ["Two."], "n": 2}]
    assert texts(write(tmp_path, form, lists)) == ["One.", "Two."]
    inner: list[dict[str, object]] = [{"of": {"text": "One."}}]
    with pytest.raises(SettingsError, match="within others alone: of.text; name one: --text-field of.text"):
        texts(write(tmp_path, form, inner))


def test_a_list_with_other_values_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl", [{"paras": ["One."]}, {"paras": ["One.", 18446744073709551617]}])
    fault = "its field 'paras' is [\"One.\", 18446744073709551617], expected a text"
    assert faults(path, text_field="paras") == [("malformed", fault)]


@pytest.mark.parametrize("kind", ["binary", "large_binary"])
def test_bytes_that_are_utf8_are_texts(kind: str, tmp_path: Path) -> None:
    schema = pa.schema([("text", getattr(pa, kind)())])
    rows: list[dict[str, object]] = [
        {"text": "Bäume.".encode()},
        {"text": "Bäume.".encode("latin-1")},
        {"text": None},
    ]
    for form in ("parquet", "arrow"):
        path = write(tmp_path, form, rows, schema)
        assert faults(path) == [
            ("malformed", "byte 0xe4 is not UTF-8"),
            ("empty", "its field 'text' is null"),
        ]
        assert texts(write(tmp_path, form, rows[:1], schema)) == ["Bäume."]
        assert list(read_evaluation_texts(str(path))) == ["Bäume."]


def test_a_null_struct_is_an_empty_record(tmp_path: Path) -> None:
    schema = pa.schema([("of", pa.struct([("body", pa.string())]))])
    path = write(tmp_path, "parquet", [{"of": None}, {"of": {"body": "One."}}], schema)
    assert faults(path, text_field="of.body") == [("empty", "its field 'of.body' is null")]


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["One."]), pa.array(["Two."])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="a.parquet: has the column 'text' twice"):
        texts(tmp_path / "a.parquet", text_field="text")
