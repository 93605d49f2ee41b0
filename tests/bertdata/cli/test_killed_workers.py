"""``extract`` and ``segment`` whose processes are killed: one line, nothing left running, the same bytes."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.soak import killed_steps
from tests.soak.kills import ends_soon, list_descendants
from tests.support.commands import Outcome, contents, files_below, finish, start
from tests.support.dumps import page, write_dump

WORDS = "Water runs down the old stone steps. It leaves by the garden below, and Mr. Smith looks on. "
Start = Callable[[Path], "subprocess.Popen[str]"]


@pytest.fixture
def extraction(tmp_path: Path) -> Start:
    """Some seconds of work for two worker processes, which the native engine has none of."""
    pages = [
        page(f"Page {n}", f"{n} '''bold''' " + f"[[a|{WORDS}]]\n\n" * 200, number=n) for n in range(1, 500)
    ]
    dump = write_dump(tmp_path / "enwiki-20200101-pages.xml", *pages)
    return lambda out: start("extract", dump, "--output", out, "--workers", 2, "--engine", "python")


@pytest.fixture
def segmentation(tmp_path: Path, kit: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """The same, in parts of two files."""
    monkeypatch.setenv("NLTK_DATA", str(kit / "nltk_data"))
    article = f'<doc id="1" url="x" title="T">\nT\n\n{WORDS * 12}\n\n</doc>\n'
    folder = tmp_path / "extracted" / "AA"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"wiki_{number:02d}").write_text(article * 40)
    words = ("--eval-articles", 50, "--block-size", 0.1, "--workers", 2, "--engine", "python")
    return lambda out: start("segment", folder, "--output", out, *words)


KILLED = [("extraction", signal.SIGKILL), ("segmentation", signal.SIGTERM)]


def workers_of(process: "subprocess.Popen[str]", out: Path, moment: float) -> list[int]:
    """The workers, when work has begun and the moment has passed."""
    deadline = time.monotonic() + 30
    while len(found := list(list_descendants(process.pid))) < 2 or not (out / "unfinished").is_dir():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(moment)
    return found


def killed_amid(run: Start, out: Path, how: signal.Signals) -> tuple[Outcome, list[int]]:
    """The end of a run of which a worker was killed while it worked, and its workers.

    Where the run had ended by then, another one is killed earlier.
    """
    moment = 0.8
    while True:
        process = run(out)
        workers = workers_of(process, out, moment)
        with suppress(ProcessLookupError):
            os.kill(workers[0], how)
        outcome = finish(process)
        if outcome.status != 0:
            return outcome, workers
        shutil.rmtree(out)
        moment /= 2


@pytest.mark.thorough
@pytest.mark.parametrize(("step", "how"), KILLED)
def test_a_worker_that_dies_ends_the_run_and_the_next_one_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, step: str, how: signal.Signals
) -> None:
    run: Start = request.getfixturevalue(step)
    whole = finish(run(tmp_path / "whole"))
    assert whole.status == 0, whole.err
    outcome, workers = killed_amid(run, tmp_path / "out", how)
    assert outcome.status == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("bertdata: error: a worker process died before its work was done"), last
    assert all(map(ends_soon, workers))
    assert not [name for name in files_below(tmp_path / "out") if name.endswith(".tmp")]
    assert finish(run(tmp_path / "out")).status == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.thorough
@pytest.mark.parametrize(("step", "how"), KILLED)
def test_a_launcher_that_ends_leaves_no_worker(
    request: pytest.FixtureRequest, tmp_path: Path, step: str, how: signal.Signals
) -> None:
    run: Start = request.getfixturevalue(step)
    process = run(tmp_path / "out")
    workers = workers_of(process, tmp_path / "out", 0.3)
    process.send_signal(how)
    outcome = finish(process)
    assert outcome.status == (-how if how == signal.SIGKILL else 128 + how)
    assert all(map(ends_soon, workers))
    assert finish(run(tmp_path / "out")).status == 0
    assert not [name for name in files_below(tmp_path / "out") if "unfinished" in name]


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["extract", "segment", "nvidia", "create"])
def test_kills_by_progress_and_full_disks_change_no_byte_and_leave_nothing(
    step: str, kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NLTK_DATA", str(kit / "nltk_data"))
    for one in killed_steps.all_rounds([step], rounds=4, full_disks=1, seed=17, place=tmp_path):
        assert one.faults == (), one


@pytest.mark.parametrize(
    ("victim", "how", "status", "last"),
    [
        ("launcher", signal.SIGKILL, 0, ""),
        ("launcher", signal.SIGTERM, -signal.SIGTERM, ""),
        ("launcher", signal.SIGTERM, 143, "bertdata: done"),
        ("worker", signal.SIGKILL, 0, ""),
        ("worker", signal.SIGKILL, 1, "Killed"),
        ("worker", signal.SIGTERM, 143, killed_steps.WORKER_DIED),
        ("worker", signal.SIGTERM, 1, f"Traceback (most recent call last):\n{killed_steps.WORKER_DIED}"),
    ],
)
def test_a_wrong_end_of_a_killed_run_is_seen(
    victim: str, how: signal.Signals, status: int, last: str
) -> None:
    assert list(killed_steps.wrong_end(victim, how, status, last, False))


@pytest.mark.parametrize(
    ("victim", "how", "status", "last"),
    [
        ("launcher", signal.SIGKILL, -signal.SIGKILL, ""),
        ("launcher", signal.SIGTERM, 143, f"bertdata: {killed_steps.INTERRUPTED}"),
        ("worker", signal.SIGKILL, 1, f"bertdata: {killed_steps.WORKER_DIED}"),
    ],
)
def test_a_right_end_of_a_killed_run_is_no_fault(
    victim: str, how: signal.Signals, status: int, last: str
) -> None:
    assert list(killed_steps.wrong_end(victim, how, status, last, False)) == []
