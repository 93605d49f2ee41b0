"""One file has one real path, whatever spelling or link it is given by."""

import os
from pathlib import Path

import pytest

from bertdata.io.real_paths import find_file_system, find_repeated, resolve_path, resolve_paths


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "x").write_text("x")
    (tmp_path / "to-file").symlink_to("r/x")
    (tmp_path / "to-folder").symlink_to("r")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SPELLINGS = ["r/x", "./r/x", "r/../r/x", "{here}/r/x", "file://{here}/r/x", "to-file", "to-folder/x"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_file_has_its_real_path(folder: Path, spelling: str) -> None:
    path = spelling.format(here=folder)
    assert resolve_path(path) == os.path.realpath("r/x")
    assert resolve_paths([path, "r/other", "to-folder/.."]) == [
        os.path.realpath("r/x"),
        os.path.realpath("r/other"),
        os.path.realpath("."),
    ]
    assert find_repeated(["r/x", path]) == ("r/x", path)


@pytest.mark.parametrize(
    ("one", "other"),
    [("gs://b/x", "gcs://b/x"), ("s3://b/x", "s3a://b/x"), ("memory://h/x", "memory:///h/x")],
)
def test_urls_of_one_object_are_one(one: str, other: str) -> None:
    assert resolve_path(one) == resolve_path(other)


def test_paths_of_one_file_system_are_told_without_asking_it() -> None:
    assert find_file_system("gcs://b/x") == find_file_system("gs://b/*") == "gs"
    assert find_file_system("file:///x") == find_file_system("x/*") == ""


def test_keys_of_a_bucket_are_taken_as_they_are() -> None:
    assert resolve_path("gs://b/x") != resolve_path("gs://b/./x")
    assert find_repeated(["gs://b/x", "s3://b/x", "memory://b/x", "b/x"]) is None


def test_hard_links_are_two_files(folder: Path) -> None:
    (folder / "hard").hardlink_to(folder / "r" / "x")
    assert find_repeated(["r/x", "hard"]) is None
