"""The commit protocol: plan, claim, write, note, release, on this machine and in object stores."""

import json
import os
import pickle
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bertdata.errors import DatasetError, ManifestError, StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit, describe_plan_differences
from bertdata.io.manifest_file import dump_json, parse_json, seal_json, unseal_json
from bertdata.io.whole_directory import open_directory, remove_at_once, sweep_directories
from tests.support.commands import contents, files_below
from tests.support.lock_holder import holder
from tests.support.object_stores import Store

TERMS = {"colour": "red", "inputs": ["a", "b"]}


def manifest_terms(data: bytes, where: str) -> dict[str, Any]:
    terms: dict[str, Any] = parse_json(data, where)["terms"]
    return terms


def commit_of(directory: object, kind: str = "paint", **changes: object) -> Commit:
    return Commit(str(directory), kind, {**TERMS, **changes}, manifest_terms)


def manifest_of(commit: Commit, kind: str = "paint") -> bytes:
    return dump_json({"format_version": 2, "kind": kind, "terms": commit.terms})


def begin(directory: object) -> Commit:
    """A directory with one piece that is noted."""
    commit = commit_of(directory)
    commit.claim()
    with commit.open("piece") as file:
        file.write(b"whole")
    commit.note("piece", {"bytes": 5})
    return commit


def finish(commit: Commit) -> None:
    commit.finish(manifest_of(commit), b"sums\n", {"sources/one.json": b"{}"})


def test_a_finished_directory_holds_its_pieces_and_nothing_else(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    assert files_below(tmp_path / "out") == ["piece", "unfinished/piece.json", "unfinished/plan.json"]
    finish(commit)
    assert files_below(tmp_path / "out") == ["MD5SUMS", "manifest.json", "piece", "sources/one.json"]
    assert sorted(os.listdir(tmp_path / "out")) == ["MD5SUMS", "manifest.json", "piece", "sources"]


def test_an_object_store_gets_the_same_files(store: Store) -> None:
    commit = begin(f"{store.url}/out")
    assert store.names("out") == ["piece", "unfinished/piece.json", "unfinished/plan.json"]
    assert commit.read_note("piece") == {"bytes": 5}
    finish(commit)
    assert store.names("out") == ["MD5SUMS", "manifest.json", "piece", "sources/one.json"]


def test_a_run_of_the_same_plan_finds_the_notes(tmp_path: Path) -> None:
    begin(tmp_path / "out")
    again = pickle.loads(pickle.dumps(commit_of(tmp_path / "out")))
    again.claim()
    assert again.list_noted_pieces() == ["piece"]
    assert again.read_note("piece") == {"bytes": 5}
    assert again.read_note("another") is None


def test_a_name_with_a_slash_is_noted_too(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    commit.note("AA/wiki_00", {"bytes": 1})
    assert commit.list_noted_pieces() == ["AA/wiki_00", "piece"]
    assert commit.read_note("AA/wiki_00") == {"bytes": 1}


@pytest.mark.parametrize("name", ["part-00000.txt", "a b/%2F~c", "Übersicht\n", "\u212a+?#"])
def test_a_note_has_the_name_that_a_url_would_have(tmp_path: Path, name: str) -> None:
    commit = begin(tmp_path / "out")
    commit.note(name, {"bytes": 1})
    assert (tmp_path / "out" / "unfinished" / f"{quote(name, safe='')}.json").exists()
    assert name in commit.list_noted_pieces()


@pytest.mark.parametrize("finished", [False, True])
def test_another_plan_is_refused_with_one_wording(tmp_path: Path, finished: bool) -> None:
    commit = begin(tmp_path / "out")
    if finished:
        finish(commit)
    before = contents(tmp_path / "out")
    message = (
        f"{tmp_path}/out: was made with other settings: colour 'red', now 'blue'; other inputs (b, c); "
        "choose another directory or remove this one"
    )
    with pytest.raises(DatasetError) as refused:
        commit_of(tmp_path / "out", colour="blue", inputs=["a", "c"]).claim()
    assert str(refused.value) == message
    with pytest.raises(DatasetError, match="settings: kind 'paint', now 'dataset';"):
        commit_of(tmp_path / "out", kind="dataset").claim()
    commit_of(tmp_path / "out", inputs=["c"]).refuse_others(unknown=("inputs",))
    assert contents(tmp_path / "out") == before


def test_a_finished_directory_may_be_claimed_again(tmp_path: Path) -> None:
    finish(begin(tmp_path / "out"))
    before = contents(tmp_path / "out")
    again = commit_of(tmp_path / "out")
    again.claim()
    again.give_up()  # nothing was made anew
    assert contents(tmp_path / "out") == before
    assert not (tmp_path / "out" / "unfinished").exists()


@pytest.mark.parametrize("name", ["thesis.tex", "unfinished/thesis.tex", "unfinished/part.json"])
def test_a_strangers_files_are_refused_and_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    with pytest.raises(DatasetError, match=rf"is not empty and no paint of ours \(it holds {name}\)"):
        commit_of(tmp_path / "out").claim()
    assert contents(tmp_path / "out") == {name: b"precious"}


def test_a_strangers_file_among_the_unfinished_survives_the_release(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    stray = tmp_path / "out" / "unfinished" / "thesis.tex"
    stray.write_bytes(b"precious")
    finish(commit)
    assert files_below(tmp_path / "out" / "unfinished") == ["thesis.tex"]


def test_an_unfinished_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letter.tmp").write_bytes(b"precious")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "unfinished").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DatasetError, match="unfinished: is a link"):
        commit_of(tmp_path / "out").claim()
    assert contents(tmp_path / "elsewhere") == {"letter.tmp": b"precious"}


@pytest.mark.parametrize("name", ["thesis.tmp", "thesis.0123.tmp", "chapter/plan.json", "a/b.run.tmp"])
def test_a_strangers_temporary_file_is_refused_and_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out" / "unfinished" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    with pytest.raises(DatasetError, match="is not empty and no paint of ours"):
        commit_of(tmp_path / "out").claim()
    assert contents(tmp_path / "out") == {f"unfinished/{name}": b"precious"}
    path.rename(tmp_path / "thesis")
    shutil.rmtree(tmp_path / "out")
    commit = begin(tmp_path / "out")
    path.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "thesis").rename(path)
    commit.claim()  # sweeps
    finish(commit)
    assert files_below(tmp_path / "out" / "unfinished") == [name]


def test_a_run_that_fails_frees_a_directory_in_which_nothing_was_finished(tmp_path: Path) -> None:
    commit = commit_of(tmp_path / "out")
    with suppress(KeyboardInterrupt), commit.run():
        assert files_below(tmp_path / "out") == ["unfinished/plan.json", "unfinished/run.lock"]
        raise KeyboardInterrupt
    assert not (tmp_path / "out").exists()
    with suppress(KeyboardInterrupt), commit.run():
        with commit.open("piece") as file:
            file.write(b"whole")
        commit.note("piece", {"bytes": 5})
        raise KeyboardInterrupt
    assert files_below(tmp_path / "out") == ["piece", "unfinished/piece.json", "unfinished/plan.json"]
    with commit.run():
        finish(commit)
        assert files_below(tmp_path / "out" / "unfinished") == ["run.lock"]
    assert not (tmp_path / "out" / "unfinished").exists()


def test_a_second_run_is_refused_and_a_workers_release_leaves_the_lock(tmp_path: Path) -> None:
    commit = commit_of(tmp_path / "out")
    with holder(tmp_path / "out" / "unfinished") as first:
        commit.claim()  # as a worker of the run would see it
        finish(commit)
        assert files_below(tmp_path / "out" / "unfinished") == ["run.lock"]
        for write in (commit.run, commit.locked):
            with pytest.raises(DatasetError, match=rf"another run \(process {first.pid} on "), write():
                pass
        with pytest.raises(DatasetError, match="another run"):
            commit.release_finished({})
        first.end(signal.SIGKILL)
    commit.release()  # as a runner's worker does that outlives the launcher
    assert not (tmp_path / "out" / "unfinished").exists()


def test_a_run_that_begins_while_another_is_looked_at_is_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_files = storage.list_files

    def late(directory: str) -> list[str]:
        monkeypatch.setattr(storage, "list_files", list_files)
        begin(tmp_path / "out")
        return list_files(directory)

    monkeypatch.setattr(storage, "list_files", late)
    commit_of(tmp_path / "out").refuse_others()
    assert "piece" in files_below(tmp_path / "out")


def test_directories_of_ours_may_lie_within_one_that_is_claimed(tmp_path: Path) -> None:
    finish(begin(tmp_path / "out" / "finished"))
    begin(tmp_path / "out" / "begun")
    commit = begin(tmp_path / "out")
    finish(commit)
    assert "finished/manifest.json" in files_below(tmp_path / "out")
    assert "begun/unfinished/plan.json" in files_below(tmp_path / "out")


def test_a_claim_sweeps_what_a_crash_left(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    (tmp_path / "out" / "unfinished" / "piece.0123456789abcdef.tmp").write_bytes(b"half of")
    commit.claim()
    assert files_below(tmp_path / "out") == ["piece", "unfinished/piece.json", "unfinished/plan.json"]


def test_nothing_is_left_where_nothing_was_finished(tmp_path: Path) -> None:
    commit = commit_of(tmp_path / "out")
    commit.claim()
    commit.give_up()
    assert not (tmp_path / "out").exists()
    commit = begin(tmp_path / "out")
    before = contents(tmp_path / "out")
    commit.give_up()
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b"5", b"6"),
        lambda data: data.replace(b'"format_version": 2', b'"format_version": 1'),
        lambda data: b"[]",
        lambda data: b"[" * 100_000,
    ],
    ids=["cut", "empty", "edited", "another version", "no object", "deep"],
)
def test_a_damaged_note_is_none_and_a_damaged_plan_an_error(tmp_path: Path, damage: Any) -> None:
    commit = begin(tmp_path / "out")
    note = tmp_path / "out" / "unfinished" / "piece.json"
    note.write_bytes(damage(note.read_bytes()))
    assert commit.read_note("piece") is None
    plan = tmp_path / "out" / "unfinished" / "plan.json"
    plan.write_bytes(damage(seal_json({"number": 5})))
    with pytest.raises(ManifestError, match=rf"plan.json: .*; remove {tmp_path}/out, then run again"):
        commit.claim()


def test_a_piece_that_fails_does_not_appear(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    with suppress(KeyboardInterrupt), commit.open("second") as file:
        file.write(b"half of")
        raise KeyboardInterrupt
    assert files_below(tmp_path / "out") == ["piece", "unfinished/piece.json", "unfinished/plan.json"]


def test_attempts_after_the_release_write_the_same_and_leave_no_file(tmp_path: Path) -> None:
    commit = begin(tmp_path / "out")
    finish(commit)
    before = contents(tmp_path / "out")
    with commit.open("piece") as file:
        file.write(b"whole")
    commit.note("piece", {"bytes": 5})
    commit.delete_note("piece")
    finish(commit)
    assert contents(tmp_path / "out") == before


def test_what_is_sealed_is_unsealed() -> None:
    value = {"text": "ü", "number": 1.5, "list": [1, None]}
    assert unseal_json(seal_json(value), "here") == value
    assert json.loads(seal_json(value))["text"] == "ü"


def test_differences_name_values_and_at_most_three_of_a_list() -> None:
    ours, theirs = {"a": 1, "names": list("abcdef")}, {"a": 1, "names": []}
    assert describe_plan_differences(ours, theirs) == ["other names (a, b, c ...)"]
    assert describe_plan_differences({"new": 1}, {}) == ["new None, now 1"]
    assert describe_plan_differences({"tables": {"de": "5" * 32}}, {"tables": None}) == ["other tables"]


def test_a_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "step-1"
    for text in ("first", "second"):
        with open_directory(path) as growing:
            (growing / "file").write_text(text)
            assert growing.parent == tmp_path / "checkpoints" / "unfinished"
    assert contents(tmp_path) == {"checkpoints/step-1/file": b"second"}
    with suppress(KeyboardInterrupt), open_directory(path) as growing:
        (growing / "file").write_text("third")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path / "checkpoints") == ["step-1"]
    with pytest.raises(StorageError, match="step-1: cannot be written: .*full"), open_directory(path):
        raise OSError(28, "full")
    assert contents(tmp_path) == {"checkpoints/step-1/file": b"second"}


def test_the_same_directory_of_another_machine_stays_and_another_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "step-1"
    with open_directory(path) as ours:
        (ours / "file").write_text("same")
        with open_directory(path) as theirs:
            (theirs / "file").write_text("same")
        there = path.stat().st_ino
    assert path.stat().st_ino == there
    with open_directory(path) as ours:
        (ours / "file").write_text("else")
    assert contents(tmp_path) == {"step-1/file": b"else"}
    assert os.listdir(tmp_path) == ["step-1"]


def test_a_directory_appears_though_another_machine_removes_the_one_in_its_way(tmp_path: Path) -> None:
    path = tmp_path / "step-1"
    with open_directory(path) as theirs:
        (theirs / "file").write_text("theirs")

    def vanish(there: Path, new: Path) -> bool:
        """Stand in for a comparison during which the other machine removes its directory."""
        shutil.rmtree(there)
        raise FileNotFoundError(there / "file")

    with open_directory(path, is_same=vanish) as ours:
        (ours / "file").write_text("ours")
    assert contents(tmp_path) == {"step-1/file": b"ours"}


def test_a_directory_is_removed_by_one_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_directory(tmp_path / "step-1") as growing:
        (growing / "file").write_text("content")
    found = list[bool]()
    rmtree = shutil.rmtree

    def look(path: Path, **options: bool) -> None:
        found.append((tmp_path / "step-1").exists() or not (path / "file").exists())
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", look)
    remove_at_once(tmp_path / "step-1")
    assert found == [False]
    assert list(tmp_path.iterdir()) == []


def test_directories_never_grow_and_are_never_swept_behind_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "step-1.0123456789abcdef.tmp"
    elsewhere.mkdir(parents=True)
    (tmp_path / "unfinished").symlink_to(elsewhere.parent)
    with pytest.raises(DatasetError, match="unfinished: is a link"):
        sweep_directories(tmp_path)
    with pytest.raises(DatasetError, match="unfinished: is a link"), open_directory(tmp_path / "step-2"):
        pass
    assert elsewhere.exists()
    (tmp_path / "unfinished").unlink()
    (tmp_path / "unfinished" / "thesis.tmp").mkdir(parents=True)
    sweep_directories(tmp_path)
    assert (tmp_path / "unfinished" / "thesis.tmp").exists()


def test_directories_that_a_crash_left_are_swept(tmp_path: Path) -> None:
    (tmp_path / "unfinished" / "step-1.0123456789abcdef.tmp").mkdir(parents=True)
    (tmp_path / "unfinished" / "step-1.0123456789abcdef.tmp" / "file").write_text("half of")
    sweep_directories(tmp_path)
    assert list(tmp_path.iterdir()) == []


def growing(directory: object, *pages: str) -> Commit:
    terms = {**TERMS, "pages": list(pages)}
    return Commit(str(directory), "paint", terms, manifest_terms, may_grow=("pages",))


def test_a_list_that_may_grow_grows_until_the_directory_is_finished(tmp_path: Path) -> None:
    growing(tmp_path / "out", "a").claim()
    with pytest.raises(DatasetError, match=r"other pages \(a\)"):
        growing(tmp_path / "out").claim()
    growing(tmp_path / "out", "a", "b").claim()
    with pytest.raises(DatasetError, match=r"other pages \(b\)"):
        growing(tmp_path / "out", "a").claim()
    finish(growing(tmp_path / "out", "a", "b"))
    with pytest.raises(DatasetError, match=r"other pages \(c\)"):
        growing(tmp_path / "out", "a", "b", "c").claim()
