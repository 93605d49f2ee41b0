"""Records in memory: the file that they become, and the parts that are made of them."""

import datetime
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bertdata
from bertdata.errors import DatasetError, InputError, MissingInputError, SettingsError
from bertdata.sources.in_memory import Records

ROWS = [{"id": number, "text": f"Der Müller {number} heißt Jakob. 磨坊 is old."} for number in range(9)]
LINES = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in ROWS).encode()


def read_parts(place: Path) -> dict[str, bytes]:
    """Return the bytes of the parts in a directory, by name."""
    return {path.name: path.read_bytes() for path in sorted(place.glob("part-*"))}


def test_the_file_of_records_is_named_by_its_md5(tmp_path):
    path = Records(ROWS).write(tmp_path / "new")
    assert path == str(tmp_path / "new" / f"records-{hashlib.md5(LINES).hexdigest()}.jsonl")
    assert Path(path).read_bytes() == LINES
    assert Records(iter(ROWS)).write(tmp_path / "new") == path
    assert [file.name for file in (tmp_path / "new").iterdir()] == [Path(path).name]


def test_texts_become_records_with_a_text(tmp_path):
    texts = Records(row["text"] for row in ROWS)
    records = Records([{"text": row["text"]} for row in ROWS])
    assert texts.write(tmp_path) == records.write(tmp_path)


def test_a_missing_text_is_a_record_without_text(tmp_path):
    texts = ["Hallo Welt.", None, float("nan"), ""]
    assert list(Records(texts)) == [{"text": "Hallo Welt."}, {"text": None}, {"text": None}, {"text": ""}]
    given = {"sentences": "none", "workers": 1}
    counts = bertdata.segment(Records(texts), tmp_path / "parts", skip_bad_records=True, **given)
    assert (counts.articles, counts.empty, counts.malformed) == (1, 3, 0)
    with pytest.raises(InputError, match="record 2: its field 'text' is null"):
        bertdata.segment(Records(texts), tmp_path / "strict", **given)


@pytest.mark.parametrize("kind", ["list", "generator", "pandas", "polars", "datasets", "streamed"])
def test_every_source_makes_the_parts_and_the_manifest_of_the_same_file(kind, tmp_path):
    """A manifest names the records by the md5 of their lines, whatever object they come from."""
    path = Records(ROWS).write(tmp_path / "corpus")
    bertdata.segment(path, tmp_path / "of-file", sentences="none", text_field="text", workers=1)
    if kind in ("pandas", "polars"):
        source = pytest.importorskip(kind).DataFrame(ROWS)
    elif kind in ("datasets", "streamed"):
        source = pytest.importorskip("datasets").Dataset.from_list(ROWS)
        source = source.to_iterable_dataset() if kind == "streamed" else source
    else:
        source = ROWS if kind == "list" else (row for row in ROWS)
    counts = bertdata.segment(source, tmp_path / "parts", sentences="none", text_field="text", workers=1)
    assert counts.articles == 9
    assert read_parts(tmp_path / "parts") == read_parts(tmp_path / "of-file")
    of_file, found = ((tmp_path / name / "manifest.json").read_bytes() for name in ("of-file", "parts"))
    assert found == of_file
    assert json.loads(found)["inputs"][0]["name"] == Path(path).name


def test_the_same_records_are_kept_and_others_are_refused(tmp_path):
    given = {"sentences": "none", "text_field": "text", "workers": 1}
    bertdata.segment(ROWS, tmp_path / "parts", **given)
    before = (tmp_path / "parts" / "part-00000.txt").stat()
    bertdata.segment(ROWS, tmp_path / "parts", **given)
    assert (tmp_path / "parts" / "part-00000.txt").stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(DatasetError):
        bertdata.segment(ROWS[:5], tmp_path / "parts", **given)


def test_create_makes_the_shards_of_the_same_file(tmp_path, small_vocabulary_file):
    given = {"vocab": small_vocabulary_file, "max_seq_length": 32, "dupe_factor": 1, "workers": 1}
    given |= {"objective": "mlm", "text_field": "text", "sentences": "none"}
    bertdata.create(Records(ROWS).write(tmp_path), tmp_path / "of-file", **given)
    bertdata.create(ROWS, tmp_path / "shards", **given)
    of_file, found = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for place in (tmp_path / "of-file", tmp_path / "shards")
    )
    assert found == of_file


def test_values_become_those_of_json():
    row = {
        "date": datetime.date(2026, 1, 2),
        "numbers": np.array([1, 2]),
        "share": np.float32(0.5),
        "missing": float("nan"),
        "inner": {"words": ("a", None), 3: True},
    }
    assert list(Records([row])) == [
        {
            "date": "2026-01-02",
            "numbers": [1, 2],
            "share": 0.5,
            "missing": None,
            "inner": {"words": ["a", None], "3": True},
        }
    ]


def test_missing_values_of_a_table_are_null():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": ["a", None], "when": [pandas.Timestamp("2026-01-02"), pandas.NaT]})
    table["count"] = pandas.array([1, pandas.NA], dtype="Int64")
    assert list(Records(table)) == [
        {"text": "a", "when": "2026-01-02T00:00:00", "count": 1},
        {"text": None, "when": None, "count": None},
    ]


def test_a_class_derived_from_a_dataframe_has_the_rows_of_a_dataframe():
    pandas = pytest.importorskip("pandas")

    class Corpus(pandas.DataFrame):
        pass

    assert list(Records(Corpus(ROWS))) == ROWS


class OtherTable:
    """A table of another package. It is an iterable of the names of its columns, as a DataFrame is."""

    columns = ("text",)

    def __iter__(self):
        return iter(self.columns)


class Reader(OtherTable):
    """An iterable of records that also knows its columns."""

    def __iter__(self):
        return iter([{"text": "a"}])


def test_the_names_of_columns_are_not_taken_for_texts():
    with pytest.raises(SettingsError, match=r"found a table of the type .*OtherTable, expected a DataFrame"):
        list(Records(OtherTable()))
    assert list(Records(Reader())) == [{"text": "a"}]


def test_equal_sources_are_refused_because_a_file_is_read_once(tmp_path):
    with pytest.raises(SettingsError, match="source 3 has the same records as source 1; give them once"):
        bertdata.segment([Records(ROWS), Records(["a"]), Records(iter(ROWS))], tmp_path / "parts", workers=1)


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (
            [{"text": SimpleNamespace()}],
            InputError,
            "record 1: field 'text': is of type SimpleNamespace, expected",
        ),
        ([{"text": "a"}, {"text": "a\ud800"}], InputError, "record 2: cannot be written as JSON in UTF-8"),
        ([{"text": "a", "x": float("inf")}], InputError, "record 1: cannot be written as JSON"),
        (Records([3]), InputError, "record 1: is of type int, expected a text or a dict of fields"),
        ({"train": ROWS}, SettingsError, "found a mapping with the keys 'train'; give one of its values"),
        ([Records(["a"]), "part.txt"], SettingsError, "sources: found both paths and records in memory"),
        ([{"text": "a"}, {"text": None}], InputError, "records-"),
        ([{"a": "x", "b": "y"}], SettingsError, "has several fields of texts: a, b"),
        (Records([]), InputError, "no record with text found"),
        (["The mill is very old."], MissingInputError, "; give texts in memory as bertdata.Records(texts)"),
        (3, SettingsError, "path 3: expected a str or a PathLike"),
    ],
)
def test_what_cannot_be_records_is_told(source, error, said, tmp_path):
    with pytest.raises(error) as caught:
        bertdata.segment(source, tmp_path / "parts", sentences="none", workers=1)
    assert said in str(caught.value)
    assert "bertdata-" not in str(caught.value)  # the temporary directory is gone when the error is read


def test_one_text_is_no_iterable_of_records(tmp_path):
    with pytest.raises(SettingsError, match="an iterable of texts or of dicts, found one text"):
        Records("The mill is old.")
    with pytest.raises(SettingsError, match="found int, expected an iterable of texts or of dicts"):
        Records(3)
    with pytest.raises(SettingsError, match="is 'csv', but records in memory have no kind"):
        bertdata.segment(ROWS, tmp_path / "parts", input_kind="csv")
