"""Rows of the logs of a run that was killed between two rows: those of an undisturbed run."""

import csv
import json
import os
import re
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bertdata.lineages.run_state import compute_state_md5
from tests.support.fine_tuning import finetune_words, table
from tests.support.training_runs import losses, refuse, start_workers, words
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.reading import read_state
from trainer.logs.foreign_logs import read_dllogger

pytestmark = pytest.mark.usefixtures("one_thread")

FLAGS = ("--log-every=4", "--checkpoint-every=3", "--keep-checkpoints=9", "--device=cpu")


@pytest.fixture
def whole(trainer: Any, training_set: Path, tmp_path: Path) -> Path:
    """A run of ten updates, with rows at 4, 8 and 10, and checkpoints at 3, 6, 9 and 10."""
    assert trainer(*words(training_set, tmp_path / "whole", *FLAGS)).status == 0
    assert [row["step"] for row in losses(tmp_path / "whole")] == [4, 8, 10]
    return tmp_path / "whole"


def logged(run: Path) -> list[tuple[float, float]]:
    """Step and loss of each row in dllogger.json."""
    return [(row["step"], row["loss"]) for row in read_dllogger(str(run / "dllogger.json")).training]


def edit_state(checkpoint: Path, **changes: Any) -> None:
    """Change fields of a state, with the md5 that belongs to them. None removes a field."""
    state = json.loads((checkpoint / "state.json").read_text(encoding="utf-8")) | changes
    state = {name: value for name, value in state.items() if value is not None and name != "md5"}
    text = json.dumps({**state, "md5": compute_state_md5(state)})
    (checkpoint / "state.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("step", [3, 6, 9])
def test_a_run_that_goes_on_from_a_checkpoint_between_rows_has_the_same_rows(
    trainer, training_set, whole, tmp_path, step
):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    assert trainer(*words(training_set, run, *FLAGS, f"--resume-step={step}")).status == 0
    assert losses(run) == losses(whole)
    assert logged(run) == logged(whole)
    for number, path in find_checkpoints(str(whole)).items():
        rows = [read_state(one).unfinished_row for one in (path, find_checkpoints(str(run))[number])]
        assert drop_times(rows[0]) == drop_times(rows[1])
        counts = [row.get("times", {}).get("updates") for row in rows]
        assert counts[0] == counts[1] == rows[0].get("updates")


def drop_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return an unfinished row without the sums of its times, which no two runs have in common."""
    return {name: value for name, value in row.items() if name not in ("times", "timed")}


def test_the_time_of_a_row_includes_the_updates_before_the_checkpoint(trainer, training_set, whole, tmp_path):
    """The updates before the checkpoint have taken an hour here, and those after it some milliseconds."""
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    checkpoint = find_checkpoints(str(run))[6]
    row = read_state(checkpoint).unfinished_row
    assert row["times"]["updates"] == 2
    row["times"]["seconds"] = 3600.0
    edit_state(checkpoint, unfinished_row=row)
    assert trainer(*words(training_set, run, *FLAGS, "--resume-step=6")).status == 0
    with (run / "training.csv").open(encoding="utf-8") as file:
        times = {row["step"]: float(row["iter_time"]) for row in csv.DictReader(file)}
    assert 900 <= times["8"] < 910
    assert times["10"] < 10


@pytest.mark.parametrize(
    "changes", [{"seconds": -1.0}, {"seconds": "1"}, {"updates": 0}, {"strange": 1.0}, {"data_wait": None}]
)
def test_damaged_times_of_a_row_are_refused(trainer, training_set, whole, tmp_path, changes):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    checkpoint = find_checkpoints(str(run))[6]
    row = read_state(checkpoint).unfinished_row
    times = {name: value for name, value in (row["times"] | changes).items() if value is not None}
    edit_state(checkpoint, unfinished_row=row | {"times": times})
    refused = trainer(*words(training_set, run, *FLAGS, "--resume-step=6"))
    refuse(refused, 1, "state.json: state.unfinished_row.times")


def test_a_branch_of_a_run_begins_with_the_whole_row(trainer, training_set, whole, tmp_path):
    start = find_checkpoints(str(whole))[6]
    assert trainer(*words(training_set, tmp_path / "branch", *FLAGS, f"--resume-from={start}")).status == 0
    assert losses(tmp_path / "branch") == losses(whole)[1:]


def test_a_run_that_was_killed_before_its_last_row_writes_it(trainer, training_set, whole, tmp_path):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    table = run / "training.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    for _ in range(2):  # the second time, the row is there and stays as it is
        outcome = trainer(*words(training_set, run, *FLAGS, "--resume"))
        assert outcome.status == 0
        assert "nothing is left to do after update 10" in outcome.err
        assert losses(run) == losses(whole)


def test_a_run_that_was_stopped_has_each_update_in_one_row(trainer, training_set, tmp_path):
    run = words(training_set, tmp_path / "run", *FLAGS)
    assert trainer(*run, "--steps-this-run=6").status == 0
    assert trainer(*run, "--resume").status == 0
    assert trainer(*words(training_set, tmp_path / "each", *FLAGS, "--log-every=1")).status == 0
    each = [row["mlm_loss"] for row in losses(tmp_path / "each")]
    rows = {row["step"]: row["mlm_loss"] for row in losses(tmp_path / "run")}
    assert list(rows) == [4, 6, 8, 10]
    assert rows[6] == pytest.approx(sum(each[4:6]) / 2)
    assert rows[8] == pytest.approx(sum(each[6:8]) / 2)


def test_a_checkpoint_of_an_earlier_version_is_still_resumed(trainer, training_set, whole, tmp_path):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    edit_state(find_checkpoints(str(run))[6], unfinished_row=None)
    assert trainer(*words(training_set, run, *FLAGS, "--resume-step=6")).status == 0
    first, second, last = losses(run)
    assert (first, last) == (losses(whole)[0], losses(whole)[2])
    assert second["mlm_loss"] != losses(whole)[1]["mlm_loss"]


@pytest.mark.thorough
def test_a_run_killed_between_two_rows_has_the_same_rows(trainer, training_set, whole, tmp_path, monkeypatch):
    run = words(training_set, tmp_path / "run", *FLAGS)
    monkeypatch.setenv("TRAINER_ACCIDENT", json.dumps({"what": "kill", "rank": 0, "update": 8}))
    assert start_workers("alone", 1, *run).status == -signal.SIGKILL
    assert [row["step"] for row in losses(tmp_path / "run")] == [4]
    assert trainer(*run, "--resume").status == 0
    assert losses(tmp_path / "run") == losses(whole)


def test_a_fine_tuning_has_the_same_rows_too(trainer, pretrained, tmp_path):
    given = (f"--train-file={table(tmp_path / 't.tsv')}", "--steps=6", *FLAGS)
    straight, run = tmp_path / "straight", tmp_path / "run"
    assert trainer(*finetune_words("classification", pretrained, straight, *given)).status == 0
    shutil.copytree(straight, run)
    again = finetune_words("classification", pretrained, run, *given, "--resume-step=3")
    assert trainer(*again).status == 0
    expected, found = (read_labels(place / "training.csv") for place in (straight, run))
    assert [row[0] for row in expected] == ["4", "6"]
    assert found == expected


def read_labels(path: Path) -> list[list[str]]:
    """The rows of a table of a classification, without times."""
    with path.open(encoding="utf-8") as file:
        return [[row[name] for name in ("step", "label_loss", "label_acc")] for row in csv.DictReader(file)]


def test_rows_are_on_disk_before_their_checkpoint_counts(trainer, training_set, tmp_path, monkeypatch):
    """After a power cut, a checkpoint would live without the rows of its updates."""
    run = tmp_path / "run"
    flushed, at_renaming = dict[str, int](), list[tuple[str, int, int]]()
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def note_flush(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        flushed[path.name] = path.stat().st_size

    def note_renaming(move, source, target, **options):
        if Path(target).name.startswith("step-"):
            rows = (run / "training.csv").read_bytes()[: flushed["training.csv"]].splitlines()
            lines = (run / "dllogger.json").read_bytes()[: flushed["dllogger.json"]]
            last = max(map(int, re.findall(rb'"step": \[[^]]*, (\d+)\]', lines)))
            at_renaming.append((Path(target).name, int(rows[-1].split(b",")[0]), last))
        move(source, target, **options)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(os, "rename", partial(note_renaming, rename))
    monkeypatch.setattr(os, "replace", partial(note_renaming, replace))
    data = (f"--eval-data={training_set}", "--eval-every=2", "--eval-examples=8")
    outcome = trainer(*words(training_set, run, *data, "--log-every=1", "--checkpoint-every=5"))
    assert outcome.status == 0, outcome.err
    assert at_renaming == [("step-00000005", 5, 5), ("step-00000010", 10, 10)]
    assert flushed["training.csv"] == (run / "training.csv").stat().st_size
    assert flushed["evaluation.csv"] == (run / "evaluation.csv").stat().st_size
