"""Two runs into one directory: the second is told so in one line, the first is not disturbed."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bertdata.io.directory_lock import LOCK_NAME
from tests.soak.kills import list_descendants
from tests.support.commands import SMALL, contents, finish, start
from tests.support.dumps import page, write_dump
from tests.support.paths import EXTRACTED

Start = Callable[[Path], "subprocess.Popen[str]"]
SECONDS = 120


@pytest.fixture
def extract(tmp_path: Path) -> Start:
    pages = [page(f"Page {n}", f"{n} " + "[[a|Water runs down.]]\n\n" * 400, number=n) for n in range(1, 200)]
    dump = write_dump(tmp_path / "enwiki-20200101-pages.xml", *pages)
    return lambda out: start("extract", dump, "--output", out, "--workers", 2)


@pytest.fixture
def segment(kit: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setenv("NLTK_DATA", str(kit / "nltk_data"))
    words = ("--eval-articles", 1, "--workers", 2, "--engine", "python")
    return lambda out: start("segment", EXTRACTED, "--output", out, *words)


@pytest.fixture
def create(corpus: list[Path], small_vocabulary_file: Path) -> Start:
    words = ("--vocab", small_vocabulary_file, *SMALL[:-1], "--workers", 2, "--engine", "python")
    return lambda out: start("create", *corpus, "--output", out, *words)


def stop_when_it_writes(process: "subprocess.Popen[str]", out: Path) -> None:
    """Stop the run and its workers when its plan is there."""
    deadline = time.monotonic() + SECONDS
    while not (out / "unfinished" / "plan.json").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    for worker in list_descendants(process.pid):
        os.kill(worker, signal.SIGSTOP)


def go_on(process: "subprocess.Popen[str]") -> None:
    for worker in list_descendants(process.pid):
        os.kill(worker, signal.SIGCONT)
    process.send_signal(signal.SIGCONT)


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["extract", "segment", "create"])
def test_a_second_run_ends_at_once_and_the_first_makes_the_whole(
    request: pytest.FixtureRequest, tmp_path: Path, step: str
) -> None:
    run: Start = request.getfixturevalue(step)
    out = tmp_path / "out"
    assert finish(run(tmp_path / "alone"), SECONDS).status == 0
    first = run(out)
    stop_when_it_writes(first, out)
    before = contents(out)
    second = finish(run(out), SECONDS)
    who = f"process {first.pid} on {os.uname().nodename}"
    assert second.status == 2, second.err
    assert second.err.splitlines()[-1] == (
        f"bertdata: error: {out}: another run ({who}) is writing here; "
        "wait for its end, or choose another directory"
    )
    assert contents(out) == before
    go_on(first)
    ended = finish(first, SECONDS)
    assert ended.status == 0, ended.err
    assert contents(out) == contents(tmp_path / "alone")


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["extract", "segment", "create"])
def test_of_runs_that_start_together_some_end_well_and_others_say_why(
    request: pytest.FixtureRequest, tmp_path: Path, step: str
) -> None:
    run: Start = request.getfixturevalue(step)
    out = tmp_path / "out"
    assert finish(run(tmp_path / "alone"), SECONDS).status == 0
    outcomes = [finish(process, SECONDS) for process in [run(out) for _ in range(4)]]
    for outcome in outcomes:
        assert outcome.status in (0, 2), outcome.err
        if outcome.status:
            assert f"{out}: another run (process " in outcome.err.splitlines()[-1]
    assert 0 in [outcome.status for outcome in outcomes]
    assert contents(out) == contents(tmp_path / "alone")
    assert not (out / "unfinished").exists()


@pytest.mark.thorough
def test_a_lock_that_a_killed_run_left_stops_nobody(create: Start, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = create(out)
    stop_when_it_writes(first, out)
    workers = list(list_descendants(first.pid))
    first.kill()
    for worker in workers:
        os.kill(worker, signal.SIGCONT)
    first.communicate(timeout=SECONDS)
    assert (out / "unfinished" / LOCK_NAME).exists()
    assert finish(create(out), SECONDS).status == 0
    assert not (out / "unfinished").exists()
