"""Runs whose directory is a URL: bit for bit as local ones, whatever happens to machine and store."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from bertdata.io import storage
from tests.support.training_runs import losses, refuse, words
from trainer.remote.folders import find_copies_folder, find_working_folder

pytestmark = pytest.mark.usefixtures("one_thread", "cache")

URL = "memory://bucket/run"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache of this machine, which is lost when the machine is."""
    place = tmp_path / "cache"
    monkeypatch.setenv("BERTDATA_CACHE", str(place))
    return place


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    """An empty memory:// file system, before and after."""
    files = fsspec.filesystem("memory")
    for _ in range(2):
        files.store.clear()
        files.pseudo_dirs[:] = [""]
        if _ == 0:
            yield


@pytest.fixture
def local(trainer, training_set, tmp_path) -> Path:
    """An undisturbed local run of ten updates."""
    place = tmp_path / "local"
    assert trainer(*words(training_set, place, "--checkpoint-every=2")).status == 0
    return place


def read(name: str, url: str = URL) -> bytes:
    return storage.read_bytes(f"{url}/{name}")


def numbers(url: str = URL) -> list[int]:
    """The numbers of the checkpoints that are whole in the store."""
    names = storage.list_files(url)
    return [int(name.split("/")[1][5:]) for name in names if name.endswith("/state.json")]


def assert_same_weights(local: Path, number: int, url: str = URL) -> None:
    folder = f"checkpoints/step-{number:08d}"
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert read(f"{folder}/{name}", url) == (local / folder / name).read_bytes()


def test_a_run_at_a_url_has_the_bytes_of_a_local_run(trainer, training_set, local, cache):
    ended = trainer(*words(training_set, URL, "--checkpoint-every=2", "--keep-checkpoints=2"))
    assert ended.status == 0, ended.err
    assert_same_weights(local, 10)
    assert numbers()[-1] == 10
    assert len(numbers()) <= 2
    assert "unfinished/run.lock" not in storage.list_files(URL)
    assert read("training.csv").decode().count("\n") == 11
    assert "checkpoint 10 is in memory://bucket/run" in ended.err
    assert str(cache) not in ended.err


def test_a_run_is_resumed_on_another_machine(trainer, training_set, local, cache):
    run = words(training_set, URL, "--checkpoint-every=2")
    assert trainer(*run, "--steps-this-run=4").status == 0
    shutil.rmtree(cache)
    resumed = trainer(*run, "--resume")
    assert resumed.status == 0, resumed.err
    assert_same_weights(local, 10)
    table = find_working_folder(URL)
    assert losses(table) == losses(local)
