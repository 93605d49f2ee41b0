"""The lock of a directory: one run at a time, whoever dies."""

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.directory_lock import LOCK_NAME, lock_directory, name_this_process, remove_stale_lock
from tests.support.lock_holder import HOLD, holder
from tests.support.paths import ROOT

SECONDS = 60
"""Limit for what takes a moment on a machine that is not busy."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out" / "unfinished"


def test_a_process_of_the_same_run_shares_the_lock(folder: Path) -> None:
    with holder(folder) as first:
        owner = f"process {first.pid} on {os.uname().nodename}"
        with lock_directory(str(folder), ["process 1 elsewhere", owner]):
            pass
        assert (folder / LOCK_NAME).exists()
        with pytest.raises(DatasetError), lock_directory(str(folder), ["process 1 elsewhere"]):
            pass
        first.let_go()
        assert not folder.parent.exists()


def test_a_second_run_is_told_who_holds_the_directory(folder: Path) -> None:
    with holder(folder) as first:
        who = f"process {first.pid} on {os.uname().nodename}"
        with pytest.raises(DatasetError) as refused, lock_directory(str(folder)):
            pass
        assert str(refused.value) == (
            f"{folder.parent}: another run ({who}) is writing here; "
            "wait for its end, or choose another directory"
        )
        assert refused.value.exit_status == 2
        first.let_go()
        assert not folder.parent.exists()
    with lock_directory(str(folder)):
        assert os.listdir(folder) == [LOCK_NAME]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_its_process_ends_a_lock(folder: Path, how: signal.Signals) -> None:
    with holder(folder) as first:
        first.end(how)
    assert os.listdir(folder) == [LOCK_NAME]
    with lock_directory(str(folder)):
        assert f"process {os.getpid()} on " in (folder / LOCK_NAME).read_text()
    assert not folder.exists()


def test_a_forked_child_does_not_keep_the_lock_beyond_its_parent(folder: Path) -> None:
    with holder(folder, "fork") as first:
        first.end(signal.SIGKILL)
        os.kill(first.child, 0)  # it lives
        with lock_directory(str(folder)):
            pass


def test_a_forked_child_that_ends_does_not_release_the_lock(folder: Path) -> None:
    with lock_directory(str(folder)):
        child = multiprocessing.get_context("fork").Process(target=os.closerange, args=[3, 100])
        child.start()
        child.join(SECONDS)
        assert locked_for_others(folder)


def locked_for_others(folder: Path) -> bool:
    """True if another process cannot take the lock."""
    code = HOLD.replace("sys.stdin.readline()", "pass")
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=SECONDS,
        check=False,
    )
    return f"another run (process {os.getpid()} on " in done.stderr


def test_a_process_locks_a_directory_once_at_a_time(folder: Path) -> None:
    with lock_directory(str(folder)):
        with (
            pytest.raises(DatasetError, match=f"process {os.getpid()} on "),
            lock_directory(f"file://{folder}"),
        ):
            pass
        assert locked_for_others(folder)
        remove_stale_lock(str(folder))
        assert locked_for_others(folder)
    with lock_directory(str(folder)):
        pass


def test_a_lock_file_of_a_killed_run_is_removed(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_text("bertdata: process 1 on elsewhere\n")
    remove_stale_lock(str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("left", [b"", bytes(34)], ids=["empty", "zeros"])
def test_a_lock_file_that_a_power_cut_has_emptied_is_taken(folder: Path, left: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_bytes(left)
    with lock_directory(str(folder)):
        assert (folder / LOCK_NAME).read_text() == f"bertdata: {name_this_process()}\n"


def test_a_strangers_file_of_that_name_is_refused_and_stays(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_text("precious")
    with pytest.raises(DatasetError, match="is no lock of ours; remove it"), lock_directory(str(folder)):
        pass
    assert (folder / LOCK_NAME).read_text() == "precious"
    (folder / LOCK_NAME).rename(folder / "target")
    (folder / LOCK_NAME).symlink_to("target")
    with pytest.raises(StorageError, match=f"{LOCK_NAME}: "), lock_directory(str(folder)):
        pass
    assert (folder / "target").read_text() == "precious"


def test_a_file_system_without_locks_is_written_to_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with lock_directory(str(folder)):
        assert os.listdir(folder) == [LOCK_NAME]
    assert not folder.exists()


def test_a_remote_directory_has_no_lock() -> None:
    with ExitStack() as both:
        both.enter_context(lock_directory("memory://locks/unfinished"))
        both.enter_context(lock_directory("memory://locks/unfinished"))
        assert storage.list_files("memory://locks") == []


def take_turns(folder: str, inside: str, rounds: int) -> int:
    """Take the lock so many times; a file says that somebody has it."""
    taken = 0
    while taken < rounds:
        try:
            with lock_directory(folder):
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                os.unlink(inside)
                taken += 1
        except DatasetError:
            continue
    return taken


def test_never_two_have_the_lock_though_it_comes_and_goes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bertdata.io import directory_lock

    monkeypatch.setattr(directory_lock, "sleep", lambda seconds: None)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        work = [(str(folder), str(tmp_path / "inside"), 30)] * 4
        assert pool.starmap_async(take_turns, work).get(SECONDS) == [30] * 4
    assert not folder.exists()
    assert storage.list_files(str(tmp_path)) == []
