"""The files below a directory: each once, links followed, and whatever is left out named."""

import os
from pathlib import Path
from typing import Any

import fsspec
import pytest

from bertdata.errors import StorageError
from bertdata.io.listing import (
    BROKEN,
    CIRCLES,
    HIDDEN,
    REFUSED,
    REPEATED,
    SPECIAL,
    describe_left_out,
    list_inputs,
)


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


def test_a_link_to_a_directory_is_followed(tmp_path: Path) -> None:
    make(tmp_path, "c/en/a.jsonl", "elsewhere/deep/b.jsonl")
    (tmp_path / "c" / "de").symlink_to("../elsewhere")
    found = list_inputs(str(tmp_path / "c"))
    assert found.names == ["de/deep/b.jsonl", "en/a.jsonl"]
    assert found.left_out == {}


def test_what_two_links_or_a_link_and_a_folder_hold_is_taken_once_and_under_the_real_name(
    tmp_path: Path,
) -> None:
    make(tmp_path, "c/x/a.txt", "elsewhere/b.txt")
    (tmp_path / "c" / "first").symlink_to("x")
    (tmp_path / "c" / "one").symlink_to("../elsewhere")
    (tmp_path / "c" / "two").symlink_to("../elsewhere")
    (tmp_path / "c" / "a-link.txt").symlink_to("x/a.txt")
    found = list_inputs(str(tmp_path / "c"))
    assert found.names == ["one/b.txt", "x/a.txt"]
    assert found.left_out == {REPEATED: ["a-link.txt", "first/", "two/"]}


def test_a_folder_behind_one_link_and_a_file_behind_another_are_one(tmp_path: Path) -> None:
    make(tmp_path, "c/own.txt", "elsewhere/b.txt")
    (tmp_path / "c" / "a.txt").symlink_to("../elsewhere/b.txt")
    (tmp_path / "c" / "z").symlink_to("../elsewhere")
    found = list_inputs(str(tmp_path / "c"))
    assert found.names == ["a.txt", "own.txt"]
    assert found.left_out == {REPEATED: ["z/b.txt"]}


def test_circles_end(tmp_path: Path) -> None:
    make(tmp_path, "c/x/a.txt", "elsewhere/b.txt")
    (tmp_path / "c" / "x" / "up").symlink_to("..")
    (tmp_path / "c" / "above").symlink_to(tmp_path)
    (tmp_path / "c" / "out").symlink_to("../elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to("../c")
    found = list_inputs(str(tmp_path / "c"))
    assert found.names == ["out/b.txt", "x/a.txt"]
    assert found.left_out == {CIRCLES: ["above/", "x/up/"], REPEATED: ["out/back/"]}


@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_hidden_names_are_left_out_and_counted_once_a_folder(tmp_path: Path, place: str) -> None:
    names = ("a.json", "_delta_log/0.json", "_delta_log/1.json", "x/.b.json", "x/_temporary/0/c.json")
    make(tmp_path, *names)
    if place == "bucket":
        bucket = fsspec.filesystem("memory")
        for name in names:
            bucket.pipe(f"/listing/{name}", b"x")
    found = list_inputs(str(tmp_path) if place == "disk" else "memory://listing")
    assert found.names == ["a.json"]
    assert found.left_out == {HIDDEN: ["_delta_log/", "x/.b.json", "x/_temporary/"]}
    assert list_inputs(str(tmp_path), hidden=True).names == sorted(names)


def test_links_to_nothing_and_pipes_are_named(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    (tmp_path / "b.txt").symlink_to("gone.txt")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    found = list_inputs(str(tmp_path))
    assert found.names == ["a.txt"]
    assert found.left_out == {BROKEN: ["b.txt", "loop.txt"], SPECIAL: ["pipe.txt"]}


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.txt", "closed/b.txt")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # root, who runs many tests, may read every folder
    assert list_inputs(str(tmp_path)).left_out == {REFUSED: ["closed/"]}
    with pytest.raises(StorageError, match="closed: Permission denied"):
        list_inputs(str(tmp_path / "closed"))


def test_a_line_tells_number_and_reason_and_the_first_names() -> None:
    lines = describe_left_out("in", {BROKEN: ["a", "b", "c", "d"], HIDDEN: ["_x/"]})
    assert lines == [
        "in: left out 4 (links to nothing): a, b, c, ...",
        "in: left out 1 (hidden, their names begin with . or _): _x/",
    ]
