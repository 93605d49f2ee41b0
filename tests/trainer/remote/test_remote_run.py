"""What stays in the working directories of a run in a bucket."""

import json
from pathlib import Path

import pytest

from trainer.remote.remote_run import list_numbers, list_states, remove_strange_checkpoints


def save(folder: Path, *numbers: int, run: str = "this") -> None:
    for number in numbers:
        path = folder / "checkpoints" / f"step-{number:08d}" / "state.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"run": run, "step": number}), encoding="utf-8")


@pytest.mark.parametrize(
    ("here", "other_run", "kept"),
    [
        ((), (), []),
        ((10, 12), (), [10, 12]),  # this machine has trained on after the last upload
        ((8, 10), (), [10]),
        ((), (30,), []),  # an earlier run with the same URL, or one that continued otherwise
        ((), (10, 30), []),
    ],
)
def test_a_machine_without_rank_0_keeps_only_checkpoints_of_this_run(tmp_path, here, other_run, kept):
    save(tmp_path / "rank 0", 10)
    save(tmp_path / "other", *here)
    save(tmp_path / "other", *other_run, run="another")
    remove_strange_checkpoints(tmp_path / "other", list_states(tmp_path / "rank 0"))
    assert list_numbers(tmp_path / "other") == kept
    assert (tmp_path / "other" / "checkpoints").exists() == bool(kept)


def test_a_working_directory_that_all_machines_share_stays_as_it_is(tmp_path):
    save(tmp_path, 4, 10)
    remove_strange_checkpoints(tmp_path, list_states(tmp_path))
    assert list_numbers(tmp_path) == [4, 10]
