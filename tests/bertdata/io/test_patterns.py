"""Patterns name the same files on a disk and in a bucket, as Python's glob and a shell do."""

import time
from collections.abc import Callable
from glob import glob
from pathlib import Path

import fsspec
import pytest

from bertdata.errors import MissingInputError
from bertdata.io.patterns import expand_patterns, find_matches

FILES = ("a.txt", "x/b.txt", "x/y/c.txt", ".hidden.txt", ".git/d.txt", "x/.e.txt")

Found = Callable[[str], list[str]]


@pytest.fixture(params=["disk", "bucket"])
def found(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """The matches of a pattern in a folder with FILES, relative to it."""
    if request.param == "bucket":
        bucket = fsspec.filesystem("memory")
        for name in FILES:
            bucket.pipe(f"/patterns/in/{name}", b"x")
        return lambda pattern: [
            path.removeprefix("memory://patterns/") for path in find_matches(f"memory://patterns/{pattern}")
        ]
    for name in FILES:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    return find_matches


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("in/**/*.txt", ["in/a.txt", "in/x/b.txt", "in/x/y/c.txt"]),
        ("in/**", ["in/a.txt", "in/x/b.txt", "in/x/y/c.txt"]),
        ("in/**/*", ["in/a.txt", "in/x/b.txt", "in/x/y/c.txt"]),
        ("in/**/**/c.txt", ["in/x/y/c.txt"]),
        ("in/**/y/*.txt", ["in/x/y/c.txt"]),
        ("in/*/*.txt", ["in/x/b.txt"]),
        ("in/*.txt", ["in/a.txt"]),
        ("in/.*.txt", ["in/.hidden.txt"]),
        ("in/**/.e.txt", ["in/x/.e.txt"]),
        ("in/[!b].txt", ["in/a.txt"]),
        ("in/?.txt", ["in/a.txt"]),
        ("in/a**.txt", ["in/a.txt"]),
        ("in/nothing*", []),
    ],
)
def test_a_pattern_names_the_same_files_everywhere(found: Found, pattern: str, names: list[str]) -> None:
    assert found(pattern) == names


@pytest.mark.parametrize("pattern", ["in/**/*.txt", "**/*.txt", "in/**/y/*", "in/x/**/c.txt", "in/*/*"])
def test_local_files_are_those_of_recursive_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for name in FILES:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    files = [path for path in glob(pattern, recursive=True) if Path(path).is_file()]
    assert [path for path in expand_patterns([pattern]) if Path(path).is_file()] == sorted(files)


def test_stars_go_through_a_link_once_and_never_in_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "x").mkdir(parents=True)
    (tmp_path / "in" / "x" / "a.txt").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").write_text("x")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in" / "x")
    (tmp_path / "in" / "x" / "up").symlink_to("..")
    assert (
        expand_patterns(["in/**/*.txt"]) == expand_patterns(["in/**/*"]) == ["in/linked/b.txt", "in/x/a.txt"]
    )


def test_a_path_that_exists_is_no_pattern_and_one_that_names_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a[1]*.txt").write_text("x")
    (tmp_path / "a1.txt").write_text("x")
    assert expand_patterns([f"{tmp_path}/a[1]*.txt"]) == [f"{tmp_path}/a[1]*.txt"]
    with pytest.raises(MissingInputError, match=r"/\*\*/\*.json: no such file or directory"):
        expand_patterns([f"{tmp_path}/**/*.json"])


@pytest.mark.parametrize("start", ["", "memory://long-patterns/"])
def test_a_pattern_longer_than_any_path_names_nothing_at_once(start: str) -> None:
    """Python translates so many open brackets in minutes."""
    begin = time.process_time()
    for pattern in (f"{start}{'[' * 100_000}", f"{start}**/{'[' * 100_000}*"):
        assert find_matches(pattern) == []
    assert time.process_time() - begin < 5
