"""Lists of JSON and objects over several lines are records, read in a stream."""

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError, SettingsError
from bertdata.sources import json_values as module
from bertdata.sources.json_values import read_json_values
from tests.support.commands import Program, contents
from tests.support.memory import peak_bytes
from tests.support.paths import ROOT
from tests.support.read_records import faults, read_records, texts

OBJECTS = [{"id": 1, "text": 'One "so", [1].'}, {"id": 2, "text": "Two \\ {2}.\nThree."}]
FORMS = {
    "a list": json.dumps(OBJECTS),
    "a list over several lines": json.dumps(OBJECTS, indent=2),
    "objects over several lines": "\n".join(json.dumps(one, indent=1) for one in OBJECTS),
    "lists one after another": "\n".join(json.dumps([one]) for one in OBJECTS),
    "after a mark": "\ufeff" + json.dumps(OBJECTS, ensure_ascii=False),
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_records_of_json_lines(form: str, tmp_path: Path) -> None:
    lines = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, OBJECTS)))
    expected = read_records(lines, id_field="id")
    found = read_records(write(tmp_path / "a.json", FORMS[form]), id_field="id")
    assert found == expected
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(FORMS[form].encode()))
    assert read_records(tmp_path / "a.json.gz", id_field="id") == expected


def test_a_list_of_texts_has_a_record_each(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "a.json", json.dumps(["One.", "Two."]))) == ["One.", "Two."]


def test_one_object_over_several_lines_is_a_record(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "a.json", '{\n "text": "over several lines"\n}\n')) == [
        "over several lines"
    ]


def test_records_within_an_object_are_not_taken_for_its_title(tmp_path: Path) -> None:
    """SQuAD's form: one string at the top, ``1.1``, would be the only text."""
    for indent in (None, 2):
        path = write(tmp_path / "a.json", json.dumps({"version": "1.1", "data": OBJECTS}, indent=indent))
        with pytest.raises(
            InputError, match=r"is one object of JSON that holds a list of others.*jq -c '\.\. "
        ):
            texts(path)
    assert texts(path, text_field="version") == ["1.1"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"text": "One."}, {"text": "Two', "behind record 1: is no JSON: its last value is cut short"),
        ('[{"text": "One."}, {"text": "Two."}', "behind record 2: is no JSON: its list is not closed"),
        ('[{"text": "One."} {"text": "Two."}]', "behind record 1: is no JSON: '{' stands where"),
        ('[{"text": "One."},, {"text": "Two."}]', "behind record 1: is no JSON: ',' stands where"),
        ('[{"text": "One."}]]', "behind record 1: is no JSON: ']' stands where"),
    ],
)
def test_a_damaged_list_ends_the_run(text: str, fault: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", text)
    with pytest.raises(InputError) as error:
        read_records(path, kind="json", text_field="text", skip_bad_records=True)
    assert fault in str(error.value)


def test_a_bad_value_is_one_bad_record(tmp_path: Path) -> None:
    values = '[{"text": "One."}, {"text": 7}, 5, {"text": nul}, {"text": NaN}, {"text": "Two.", "n": NaN}]'
    found = faults(write(tmp_path / "a.json", values), kind="json", text_field="text")
    assert found[:2] == [
        ("malformed", "its field 'text' is 7, expected a text"),
        ("malformed", "is JSON, but no object: 5"),
    ]
    assert found[2][1].startswith("is not JSON: ")
    assert found[3:] == [("malformed", "its field 'text' is NaN, expected a text")]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(['"', "\\", '\\"', "]}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)


@given(st.lists(VALUES, max_size=6), st.integers(1, 9), st.sampled_from([None, 0, 1]), st.booleans())
def test_values_are_those_of_the_standard_library(
    values: list[object], block: int, indent: int | None, ascii: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE_BYTES", block)
        data = json.dumps(values, indent=indent, ensure_ascii=ascii).encode()
        found = [json.loads(value or b"") for value in read_json_values(io.BytesIO(data), 1 << 20)]
        assert found == values
        objects = [value for value in values if isinstance(value, dict)]
        data = "\n".join(json.dumps(value, indent=indent) for value in objects).encode()
        assert [json.loads(value or b"") for value in read_json_values(io.BytesIO(data), 1 << 20)] == objects


def test_a_value_that_is_too_long_is_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(
        gzip.compress(b'[{"text": "One."}, {"text": "' + b"a" * (1 << 26) + b'"}, {"text": "Two."}]')
    )
    found: list[object] = []

    def run() -> None:
        found.extend(read_records(path, text_field="text", max_record_bytes=1 << 10))

    assert peak_bytes(run) < 1 << 25
    assert [getattr(one, "text", None) or getattr(one, "reason", None) for one in found] == [
        "One.",
        "too_long",
        "Two.",
    ]


def test_a_list_named_as_json_lines_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", json.dumps(OBJECTS, indent=1))
    with pytest.raises(InputError, match="looks like json, expected jsonl"):
        texts(path, kind="jsonl")


def test_several_fields_are_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", json.dumps([{"title": "A", "text": "B"}]))
    with pytest.raises(
        SettingsError, match="several fields of texts: title, text; name one: --text-field text"
    ):
        texts(path)


def test_a_list_makes_the_parts_of_json_lines_in_create_and_segment(
    bertdata: Program, tmp_path: Path
) -> None:
    write(tmp_path / "a.json", json.dumps(OBJECTS, indent=1))
    write(tmp_path / "b.jsonl", "\n".join(map(json.dumps, OBJECTS)))
    made = []
    for name in ("a.json", "b.jsonl"):
        flags = ("--text-field", "text", "--sentences", "lines", "--workers", 1)
        outcome = bertdata("segment", tmp_path / name, "--output", tmp_path / f"{name}.parts", *flags)
        assert outcome.status == 0, outcome.err
        vocabulary = ("--vocab", ROOT / "golden" / "vocab.txt", "--recipe", "google")
        outcome = bertdata("create", tmp_path / name, "--output", tmp_path / name[0], *vocabulary, *flags)
        assert outcome.status == 0, outcome.err
        (shard,) = (tmp_path / name[0]).glob("*.tfrecord")
        made.append((contents(tmp_path / f"{name}.parts")["part-00000.txt"], shard.read_bytes()))
    assert made[0] == made[1]
