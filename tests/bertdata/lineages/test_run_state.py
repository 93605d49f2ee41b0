"""States of checkpoints, read without the trainer: older ones, and fields of the wrong type."""

import json
from typing import Any

import pytest

from bertdata.errors import ManifestError
from bertdata.lineages.documents import RecordDocuments
from bertdata.lineages.run_state import compute_state_md5
from bertdata.lineages.run_steps import make_run_step
from bertdata.lineages.step import Step


def read_step(**fields: Any) -> Step:
    """Return the step of a state with these fields and the md5 that belongs to them."""
    state = {"format": "bertdata checkpoint 1", "config": {}, "files": {}} | fields
    data = json.dumps({**state, "md5": compute_state_md5(state)}).encode()
    return make_run_step(
        data, "state.json", RecordDocuments(), lambda *given: pytest.fail("follows a record")
    )


@pytest.mark.parametrize("fields", [{}, {"sources": None}, {"lanes": 4}, {"field_of_a_later_version": 1}])
def test_a_state_of_another_version_or_of_a_converted_checkpoint_is_read(fields):
    assert read_step(**fields).inputs == ()


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"history": [{"settings": {}}]}, "history/0"),
        ({"history": [7]}, "history/0"),
        ({"sources": {"train_data": [{}]}}, "sources/train_data/0"),
        ({"best": [1]}, "best"),
        ({"step": "2"}, "step"),
        ({"files": {"model.safetensors": None}}, "files/model.safetensors"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields, place):
    with pytest.raises(ManifestError, match=f"^state.json: {place}: "):
        read_step(**fields)
