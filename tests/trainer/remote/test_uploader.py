"""What the store holds after uploads from a working directory: failures, phases and best evaluations."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from tests.support.failing_memory import FailingFileSystem, failing_memory
from trainer.remote import retries, uploader
from trainer.remote.stored_run import StoredRun
from trainer.remote.uploader import Uploader

URL = "failing://bucket/run"
LONGEST_SECONDS = 20.0


@pytest.fixture(autouse=True)
def store(monkeypatch) -> Iterator[type[FailingFileSystem]]:
    """A store that does not fail yet, and short pauses."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(uploader, "REST_SECONDS", 0.01)
    monkeypatch.setattr(uploader, "LOOK_SECONDS", 0.01)
    with failing_memory() as kind:
        yield kind


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "work"


def save(folder: Path, number: int, *, weights: str = "", **state: object) -> None:
    """Write a checkpoint as a run does: it appears whole, in place of one with the same number."""
    growing, path = folder / "growing.tmp", folder / "checkpoints" / f"step-{number:08d}"
    growing.mkdir(parents=True)
    (growing / "model.safetensors").write_text(weights or f"weights {number}", encoding="utf-8")
    files = {"model.safetensors": compute_file_md5(str(growing / "model.safetensors"))}
    (growing / "state.json").write_text(json.dumps({"files": files, **state}), encoding="utf-8")
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    growing.rename(path)


def forget(folder: Path, number: int) -> None:
    shutil.rmtree(folder / "checkpoints" / f"step-{number:08d}")


def list_whole() -> list[int]:
    """The numbers of the checkpoints in the store that have all of their files."""
    found = StoredRun.read(URL).checkpoints.values()
    return [one.number for one in found if {"state.json", "model.safetensors"} <= one.names]


def wait_until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + LONGEST_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def wait_for(number: int) -> None:
    """Wait until the checkpoint with this number is in the store."""
    wait_until(lambda: number in list_whole())


def finish(uploads: Uploader) -> None:
    uploads.end()
    assert uploads.wait(LONGEST_SECONDS), "the thread does not end"


def test_the_best_checkpoint_stays_in_the_store_beside_the_newest(folder):
    uploads = Uploader(folder, URL, 1, print)
    uploads.begin(None)
    for number, best in ((1, 1), (2, 2), (3, 2), (4, 2)):
        save(folder, number, best={"number": best})
        wait_for(number)
    finish(uploads)
    assert list_whole() == [2, 4]


def test_the_best_checkpoint_is_uploaded_though_newer_ones_came_first(folder):
    for number in (2, 3, 4):
        save(folder, number, best={"number": 2})
    uploads = Uploader(folder, URL, 1, print)
    uploads.begin(None)
    finish(uploads)
    assert uploads.list_missing() == []
    assert list_whole() == [2, 4]


def test_the_end_of_phase_1_stays_if_it_is_uploaded_after_phase_2(folder):
    save(folder, 10)
    save(folder, 12, phase_start=10)
    uploads = Uploader(folder, URL, 1, print)
    uploads.begin(None)
    finish(uploads)
    assert list_whole() == [10, 12]


def test_a_checkpoint_whose_half_was_removed_is_sent_whole(folder, store):
    store.only, store.every = "step-00000010/state.json", 1
    save(folder, 10)
    uploads = Uploader(folder, URL, 2, print)
    uploads.begin(None)
    wait_until(lambda: uploads.failure is not None)
    save(folder, 12)
    wait_for(12)
    store.every = 0
    finish(uploads)
    assert list_whole() == [10, 12]


def test_an_outage_keeps_the_files_of_one_checkpoint_only(folder, store):
    store.only, store.every = "model.safetensors", 1
    uploads = Uploader(folder, URL, 2, print)
    uploads.begin(None)
    links = folder / uploader.LINKS
    for number in (2, 4, 6):
        save(folder, number)
        wait_until((links / f"step-{number:08d}").is_dir)
        if number > 2:
            forget(folder, number - 2)
    assert len(os.listdir(links)) == 1
    store.every = 0
    finish(uploads)
    assert list_whole() == [6]


def test_an_unexpected_error_does_not_end_the_uploads(folder, monkeypatch):
    lines, read = list[str](), StoredRun.read
    failures = [ValueError("what is this")]

    def fail_once(url: str) -> StoredRun:
        if failures:
            raise failures.pop()
        return read(url)

    monkeypatch.setattr(StoredRun, "read", fail_once)
    save(folder, 2)
    uploads = Uploader(folder, URL, 2, lines.append)
    uploads.begin(None)
    wait_until(lambda: lines)
    finish(uploads)
    assert list_whole() == [2]
    assert f"warning: {URL}: ValueError: what is this; " in lines[0]
    assert uploads.list_missing() == []


def test_a_checkpoint_saved_again_with_equal_weights_is_never_away(folder, store, monkeypatch):
    save(folder, 2)
    uploads = Uploader(folder, URL, 1, print)
    uploads.begin(None)
    wait_for(2)
    removed = list[str]()
    monkeypatch.setattr(storage, "remove", lambda path, **_: removed.append(path))
    save(folder, 2, best={"number": 2})
    finish(uploads)
    assert removed == []
    assert json.loads(storage.read_bytes(f"{URL}/checkpoints/step-00000002/state.json"))["best"] == {
        "number": 2
    }


def test_a_checkpoint_saved_again_with_other_weights_replaces_the_one_in_the_store(folder):
    save(folder, 2)
    uploads = Uploader(folder, URL, 1, print)
    uploads.begin(None)
    wait_for(2)
    save(folder, 2, weights="others")
    finish(uploads)
    assert storage.read_bytes(f"{URL}/checkpoints/step-00000002/model.safetensors") == b"others"


def test_a_run_that_has_lost_its_claim_adds_no_checkpoint(folder):
    save(folder, 2)
    uploads = Uploader(folder, URL, 1, print, may_write=lambda: uploads.stop_at_once() or False)
    uploads.begin(None)
    finish(uploads)
    assert list_whole() == []
    assert uploads.list_missing() == ["checkpoint 2"]
