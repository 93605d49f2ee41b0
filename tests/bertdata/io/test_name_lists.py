"""Lists of paths are split at their marks, and never within a path that exists."""

from pathlib import Path

import pytest

from bertdata.dataset.mixture.weights import split_weighted
from bertdata.io.name_lists import split_names


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a+b", "a,b", "c", "x", "x,y", "y"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "split"),
    [
        ("a+b", ["a+b"]),
        ("a,b", ["a,b"]),
        ("c+a+b", ["c", "a+b"]),
        ("a,b+c", ["a,b", "c"]),
        ("a+b,a,b", ["a+b", "a,b"]),
        ("x,y", ["x,y"]),  # the whole word names a path
        ("x,y,c", ["x", "y", "c"]),  # all three are there
        ("gone,c", ["gone", "c"]),
        ("gone+lost", ["gone", "lost"]),
        ("part-*,c", ["part-*", "c"]),
        ("a,b/*.tfrecord", ["a,b/*.tfrecord"]),  # a pattern in a directory of such a name
        ("c,a,b/*.tfrecord+a+b/**/p?", ["c", "a,b/*.tfrecord", "a+b/**/p?"]),
        ("c/*,x", ["c/*", "x"]),
        ("gone,b/*", ["gone", "b/*"]),
        ("c,,x", ["c", "", "x"]),
        ("gone+memory://h/x", ["gone", "memory://h/x"]),
    ],
)
def test_marks_in_a_path_that_exists_separate_nothing(names: str, split: list[str]) -> None:
    assert split_names(names, ",+") == split


@pytest.mark.parametrize(
    ("names", "split"),
    [
        ("a+b*0.7+c*0.3", [("a+b", "0.7"), ("c", "0.3")]),
        ("c*0.3+a,b*0.7", [("c", "0.3"), ("a,b", "0.7")]),
        (" a,b , c ", [("a,b", None), ("c", None)]),
    ],
)
def test_paths_of_a_mixture_may_have_marks_in_their_names(
    names: str, split: list[tuple[str, str | None]]
) -> None:
    assert split_weighted(names) == split
