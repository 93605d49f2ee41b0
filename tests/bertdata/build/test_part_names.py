"""Parts of one file name in several folders: names, shards, resume, whoever makes them."""

import json
import os
import shutil
from pathlib import Path

import pytest

from bertdata.build.part_names import make_shard_stem, name_parts
from bertdata.errors import SettingsError
from tests.support.commands import SMALL, Program, contents
from tests.support.pipelines import prepare

BEAM_SMALL = tuple(flag for flag in SMALL if not flag.startswith("--workers"))
SHUFFLED = ("--shuffle", "global", "--num-shards", "2")


@pytest.fixture
def tree(corpus: list[Path], tmp_path: Path) -> Path:
    """Three parts, two of them of one name."""
    for source, name in zip(
        corpus, ("de/2020/part.txt", "en/2020/part.txt", "en/2020/more.txt"), strict=True
    ):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
    return tmp_path / "tree"


def parts_of(tree: Path) -> list[Path]:
    return sorted(tree.glob("*/2020/*.txt"))


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (["a/one", "b/two"], ["one", "two"]),
        (["a/p", "b/p", "b/q"], ["a/p", "b/p", "q"]),
        (["/x/y/en/1/p", "/x/y/de/1/p"], ["en/1/p", "de/1/p"]),
        (["p", "b/p", "./c/d/../p"], ["p", "b/p", "c/p"]),
        (["gs://one/d/p", "gs://two/d/p"], ["one/d/p", "two/d/p"]),
        (["gs://one/d/p", "gs://one/e/p", "file:///q"], ["d/p", "e/p", "q"]),
    ],
)
def test_a_name_has_folders_only_where_files_share_it(parts: list[str], names: list[str]) -> None:
    assert list(name_parts(parts).items()) == list(zip(parts, names, strict=True))


def test_names_do_not_depend_on_where_the_tree_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    inside = ["p", "b/p", "c/b/p"]
    names = ["p", "b/p", "c/b/p"]
    assert list(name_parts(inside).values()) == names
    assert list(name_parts([f"{tmp_path}/{name}" for name in inside]).values()) == names
    assert list(name_parts([f"../{tmp_path.name}/{name}" for name in inside]).values()) == names
    assert list(map(make_shard_stem, names)) == ["p", "b-p", "c-b-p"]


def test_parts_of_one_name_on_different_file_systems_are_refused() -> None:
    with pytest.raises(
        SettingsError, match="gs://a/p and /b/p would make the same shard, and lie on different"
    ):
        name_parts(["gs://a/p", "/b/p"])


REMASK = ("--remask", "--dialect=graphcore")


@pytest.mark.parametrize(
    ("remask", "shuffle"),
    [
        pytest.param((), (), id="usual-plain"),
        pytest.param((), SHUFFLED, id="usual-shuffled", marks=pytest.mark.thorough),
        pytest.param(REMASK, (), id="remask-plain", marks=pytest.mark.thorough),
        pytest.param(REMASK, SHUFFLED, id="remask-shuffled"),
    ],
)
def test_create_and_beam_make_the_same_shards_wherever_the_tree_lies(
    tree: Path,
    small_vocabulary_file: Path,
    tmp_path: Path,
    bertdata: Program,
    shuffle: tuple[str, ...],
    remask: tuple[str, ...],
) -> None:
    moved = tmp_path / "another" / "place" / "deep"
    shutil.copytree(tree, moved)
    first, second = tmp_path / "first", tmp_path / "second"
    flags = (*BEAM_SMALL, *remask, *shuffle)
    assert prepare(parts_of(tree), small_vocabulary_file, first, *flags) == 0
    assert prepare(parts_of(moved)[::-1], small_vocabulary_file, second, *flags) == 0
    assert contents(first) == contents(second)
    manifest = json.loads((first / "manifest.json").read_bytes())
    assert [entry["name"] for entry in manifest["inputs"]] == [
        "de/2020/part.txt",
        "en/2020/part.txt",
        "more.txt",
    ]
    if not shuffle:
        made = {entry["input"]: entry["name"] for entry in manifest["shards"]}
        assert made == {
            "de/2020/part.txt": "de-2020-part.txt.tfrecord",
            "en/2020/part.txt": "en-2020-part.txt.tfrecord",
            "more.txt": "more.txt.tfrecord",
        }
        command = [
            "create",
            *parts_of(moved),
            "--vocab",
            small_vocabulary_file,
            "--output",
            tmp_path / "third",
        ]
        assert bertdata(*command, *SMALL, *remask).status == 0
        assert contents(tmp_path / "third") == contents(first)
    assert bertdata("verify-md5", first).status == 0


def test_a_second_run_tells_parts_of_one_name_apart(
    tree: Path, small_vocabulary_file: Path, tmp_path: Path, bertdata: Program
) -> None:
    out = tmp_path / "out"
    command = ["create", *parts_of(tree), "--vocab", small_vocabulary_file, "--output", out, *SMALL]
    assert bertdata(*command).status == 0
    before = contents(out)
    os.remove(out / "en-2020-part.txt.tfrecord")
    lines = bertdata(*command, "--dry-run").out.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("  ")] == [
        ["keep", "de-2020-part.txt.tfrecord"],
        ["keep", "more.txt.tfrecord"],
        ["make", "en-2020-part.txt.tfrecord"],
    ]
    again = bertdata(*command)
    assert sorted(line.split()[:2] for line in again.err.splitlines()) == [
        ["kept", "de-2020-part.txt.tfrecord"],
        ["kept", "more.txt.tfrecord"],
        ["made", "en-2020-part.txt.tfrecord"],
    ]
    assert contents(out) == before
    changed = tree / "de" / "2020" / "part.txt"
    changed.write_bytes(changed.read_bytes() + b"\nOne more sentence .\n")
    again = bertdata(*command)
    made = [line.split()[1] for line in again.err.splitlines() if line.startswith("made")]
    assert made == ["de-2020-part.txt.tfrecord"]


def test_a_part_that_is_left_out_is_told_by_its_folder(
    tree: Path, small_vocabulary_file: Path, tmp_path: Path, bertdata: Program
) -> None:
    (tree / "de" / "2020" / "part.txt").write_bytes(b"\xff\n")
    out = tmp_path / "out"
    command = ["create", *parts_of(tree), "--vocab", small_vocabulary_file, "--output", out, *SMALL]
    assert bertdata(*command, "--skip-bad-inputs").status == 0
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert [entry["name"] for entry in manifest["skipped"]] == ["de/2020/part.txt"]
    assert [entry["name"] for entry in manifest["inputs"]] == ["en/2020/part.txt", "more.txt"]


def test_parts_of_two_text_directories_cite_neither(
    tree: Path, small_vocabulary_file: Path, tmp_path: Path, bertdata: Program, punkt_tables: None
) -> None:
    from tests.support.paths import EXTRACTED

    texts = [tmp_path / "texts" / name for name in "ab"]
    for text, number in zip(texts, (0, 3), strict=True):
        words = ["segment", EXTRACTED, "--output", text, f"--eval-articles={number}", "--workers=1"]
        assert bertdata(*words).status == 0
    parts = [text / "part-00000-of-00500" for text in texts]
    out = tmp_path / "out"
    assert bertdata("create", *parts, "--vocab", small_vocabulary_file, "--output", out, *SMALL).status == 0
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert (manifest["parts_manifest"], [entry["name"] for entry in manifest["inputs"]]) == (
        None,
        ["a/part-00000-of-00500", "b/part-00000-of-00500"],
    )
    assert len({entry["md5"] for entry in manifest["inputs"]}) == 2
    assert bertdata("verify-md5", out, "--chain").status == 0
