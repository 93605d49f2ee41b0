"""States of checkpoints, read without the trainer: older ones, and fields of the wrong type."""

import json
from typing import Any

import pytest

from bertdata.errors import ManifestError
from bertdata.io import remote, storage
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.run_state import compute_state_md5
from bertdata.lineages.run_steps import make_run_step
from bertdata.lineages.step import EXPORT, PRETRAIN, LineageFile, Step

FILE = {"name": "mine.txt", "bytes": 4, "md5": "1" * 32}


def read_step(**fields: Any) -> Step:
    """Return the step of a state with these fields and the md5 that belongs to them."""
    state = {"format": "bertdata checkpoint 1", "config": {}, "files": {}} | fields
    data = json.dumps({**state, "md5": compute_state_md5(state)}).encode()
    return make_run_step(
        data, "state.json", RecordDocuments(), lambda *given: pytest.fail("follows a record")
    )


@pytest.mark.parametrize("fields", [{}, {"sources": None}, {"lanes": 4}, {"field_of_a_later_version": 1}])
def test_a_state_without_a_trace_of_data_is_that_of_a_converted_checkpoint(fields):
    step = read_step(**fields)
    assert step.name == EXPORT
    [source] = step.inputs
    assert source.remark == "the converted checkpoint is not known: no lineage.json names it"
    assert not source.is_fault


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"data": "0" * 32}, [f"the settings name no data; digest of their shards {'0' * 32}"]),
        (
            {"data": "0" * 32, "config": {"train_data": "nowhere/shards"}},
            ["are no longer in place, or changed"],
        ),
        ({"config": {"train_data": "s3://nobody/shards"}}, ["are not known: an earlier version"]),
        ({"config": {"train_data": "nowhere/a*0.5, s3://nobody/b*0.5"}}, ["URLs are not opened"]),
        ({"config": {"generated_data": True}}, ["random examples that the trainer generated"]),
    ],
)
def test_a_run_of_an_earlier_version_says_what_is_not_known_of_its_data(fields, expected, monkeypatch):
    monkeypatch.setattr(remote, "open_file_system", lambda path: pytest.fail(f"opens {path}"))
    monkeypatch.setattr(storage, "open_file_system", lambda path: pytest.fail(f"opens {path}"))
    step = read_step(**fields)
    assert step.name == PRETRAIN
    assert len(step.inputs) == len(expected)
    for found, words in zip(step.inputs, expected, strict=True):
        assert words in found.remark


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"history": [{"settings": {}}]}, "history/0"),
        ({"history": [7]}, "history/0"),
        ({"sources": {"train_data": [{}]}}, "sources/train_data/0"),
        ({"best": [1]}, "best"),
        ({"step": "2"}, "step"),
        ({"unchecked_files": [1]}, "unchecked_files/0"),
        ({"files": {"model.safetensors": None}}, "files/model.safetensors"),
        ({"inputs": [7]}, "inputs/0"),
        ({"inputs": [{"role": "start", "files": [FILE]}]}, "inputs/0/role"),
        ({"inputs": [{"role": "vocabulary", "files": [{"name": "a"}]}]}, "inputs/0/files/0"),
        ({"inputs": [{"role": "vocabulary", "files": [FILE], "record": "0" * 32}]}, "inputs/0"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields, place):
    with pytest.raises(ManifestError, match=f"^state.json: {place}: "):
        read_step(**fields)


def test_data_files_that_were_not_compared_are_counted():
    facts = read_step(sources={}, unchecked_files=["part-00000.hdf5", "part-00003.hdf5"]).facts
    assert facts["data files not compared with their md5s"] == 2
    assert len(read_step(sources={}, unchecked_files=[]).facts) == len(facts) - 1


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"role": "vocabulary", "files": [FILE | {"name": "../mine.txt"}]},
            "lists '../mine.txt', expected a",
        ),
        (
            {"role": "tokeniser", "files": [FILE | {"name": "/mine.txt"}]},
            "lists '/mine.txt', expected a file",
        ),
        ({"role": "vocabulary", "files": []}, "inputs: vocabulary: lists 0 files, expected 1"),
        (
            {"role": "model configuration", "files": [FILE, FILE]},
            "inputs: model configuration: lists 2 files, expected 1",
        ),
    ],
)
def test_a_record_of_flags_in_another_form_is_one_error(entry, said):
    with pytest.raises(ManifestError, match="^state.json: ") as caught:
        read_step(sources={}, inputs=[entry])
    assert said in str(caught.value)


def test_files_that_flags_named_are_sources():
    entries = [{"role": role, "files": [FILE]} for role in ("vocabulary", "model configuration")]
    step = read_step(sources={}, config={"train_data": "shards"}, inputs=entries)
    file = LineageFile(name="mine.txt", md5="1" * 32, bytes=4)
    found = [(one.role, one.files) for one in step.inputs if one.source]
    assert found == [("vocabulary", (file,)), ("model configuration", (file,))]
