"""The process pool: order, windows, several passes, errors, and the death of a worker."""

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bertdata.errors import BertDataError, InputError
from bertdata.io import process_pool, work_limits, worker_process
from bertdata.io.process_pool import ProcessPool, run_all, run_all_with_progress, run_in_order
from bertdata.io.worker_process import ReportAmount, WorkerDied
from tests.support.paths import ROOT

SOON = 10
"""Seconds that a busy machine may take for what is done at once."""


def wait_and_return(item: int) -> int:
    time.sleep(0.05 if item == 0 else 0)
    return item


def wait_for_leave(item: tuple[int, Path]) -> int:
    """Return the item's number; the first waits until the test gives it leave."""
    number, leave = item
    deadline = time.monotonic() + SOON
    while number == 0 and not leave.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return number


def fail_at_three(item: int) -> int:
    if item == 3:
        raise InputError("item 3")
    return item


def kill_itself_at_three(item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def sleep_long_at_zero(item: int) -> int:
    time.sleep(600 if item == 0 else 0)
    return kill_itself_at_three(item)


def send_much_and_die(item: int) -> bytes:
    """Die while a result larger than a pipe is on its way."""
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # kills
    return bytes(1 << 28)


class OddError(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail_oddly(item: int) -> int:
    raise OddError("this", "that")


def write_until_stopped(path: str) -> None:
    try:
        Path(path).write_text("begun")
        time.sleep(600)
    finally:
        Path(path).write_text("cleaned up")


class FailsInItsFinalizer:
    def __del__(self) -> None:
        raise RuntimeError("cut short")


def wait_with_a_failing_finalizer(path: str) -> None:
    held = FailsInItsFinalizer()
    write_until_stopped(path)
    del held


def ignore_the_end(path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(path).write_text("begun")
    time.sleep(600)


def process_id(item: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(run_in_order(wait_and_return, range(20), workers)) == list(range(20))


def test_all_results_come_as_they_finish(tmp_path: Path) -> None:
    leave = tmp_path / "leave"
    results = run_all(wait_for_leave, [(item, leave) for item in range(20)], 2)
    assert sorted(next(results) for _ in range(19)) == list(range(1, 20))
    leave.touch()
    assert list(results) == [0]
    assert list(run_all(wait_and_return, range(20), 1)) == list(range(20))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_in_its_place(workers: int) -> None:
    results = run_in_order(fail_at_three, range(20), workers)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InputError, match="item 3"):
        next(results)


def test_an_error_shows_the_workers_traceback() -> None:
    with pytest.raises(InputError) as raised:
        list(run_all(fail_at_three, range(20), 2))
    assert "in fail_at_three" in str(raised.value.__cause__)


def test_an_error_that_cannot_travel_is_told_by_name() -> None:
    with pytest.raises(RuntimeError, match="OddError: this and that"):
        list(run_all(fail_oddly, range(2), 2))


def test_one_worker_is_this_process() -> None:
    assert list(run_all(process_id, range(3), 1)) == [os.getpid()] * 3
    assert os.getpid() not in set(run_all(process_id, range(3), 2))


def test_a_pool_serves_passes_one_after_another_and_one_within_another() -> None:
    with ProcessPool(2) as pool:
        workers = {result for _, result in pool.in_order(process_id, range(20))}
        inner = (abs(item) for item, _ in pool.in_order(wait_and_return, range(0, -20, -1)))
        assert list(pool.in_order(wait_and_return, inner)) == [(n, n) for n in range(20)]
        assert workers >= {result for _, result in pool.in_order(process_id, range(20))}
    assert len(workers) == 2


def test_no_more_than_a_window_of_endless_items_is_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        while True:
            taken.append(len(taken))
            yield taken[-1]

    with ProcessPool(2) as pool:
        results = pool.in_order(abs, items())
        assert [next(results) for _ in range(5)] == [(n, n) for n in range(5)]
        assert len(taken) <= 5 + process_pool.WINDOW * 2
        results.close()
        assert list(pool.in_order(abs, [-1])) == [(-1, 1)]


def test_a_reader_that_leaves_early_leaves_no_worker_and_other_processes_alone() -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=[600], daemon=True)
    other.start()
    before = set(multiprocessing.active_children())
    assert other in before
    results = run_in_order(wait_and_return, range(1000), 2)
    assert next(results) == 0
    results.close()
    assert set(multiprocessing.active_children()) - before == set()
    assert other.is_alive()
    other.kill()
    other.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("run", [run_all, run_in_order])
def test_a_killed_worker_ends_the_pass_in_one_line(run, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "choose_start_method", lambda: method)
    with pytest.raises(
        WorkerDied,
        match=r"^a worker process died before its work was done \(process \d+, SIGKILL: killed.*kept$",
    ):
        list(run(kill_itself_at_three, range(20), 2))


def test_a_killed_worker_is_known_while_another_works_on() -> None:
    start = time.monotonic()
    with pytest.raises(WorkerDied):
        list(run_in_order(sleep_long_at_zero, range(20), 2))
    assert time.monotonic() - start < SOON
    assert multiprocessing.active_children() == []


def test_a_worker_killed_while_it_sends_does_not_hang_the_run() -> None:
    with pytest.raises(WorkerDied):
        list(run_in_order(send_much_and_die, range(20), 2))


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("threading.Thread.start", RuntimeError("can't start new thread")),
        ("multiprocessing.context.ForkProcess._Popen", OSError(12, "Cannot allocate memory")),
        ("multiprocessing.context.SpawnProcess._Popen", OSError(11, "Resource temporarily unavailable")),
    ],
)
def test_workers_that_cannot_be_started_are_one_line_and_leave_nothing(
    target: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _, name = target.rpartition(".")
    method = "fork" if "Fork" in target else "spawn"
    monkeypatch.setattr(process_pool, "choose_start_method", lambda: method)
    started = []
    sound = pkgutil.resolve_name(target)

    def start(*given: object) -> object:
        started.append(given)
        if len(started) == 2:
            raise error
        return sound(*given)

    made = staticmethod(start) if name == "_Popen" else start
    monkeypatch.setattr(pkgutil.resolve_name(module), name, made)
    with pytest.raises(BertDataError, match=r"^cannot start 2 workers: .*; give fewer$"):
        list(run_in_order(process_id, range(4), 2))
    assert multiprocessing.active_children() == []


def stop_when_begun(function, files: list[str]) -> None:
    """Raise in the reader of a pass when all workers are at work."""

    def items() -> Iterator[str]:
        yield from files
        deadline = time.monotonic() + SOON
        while not all(Path(file).exists() for file in files):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ProcessPool(2) as pool:
        list(pool.in_order(function, items()))
    assert multiprocessing.active_children() == []


def test_work_that_is_stopped_cleans_up_behind_itself(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in "ab"]
    stop_when_begun(write_until_stopped, files)
    assert [Path(file).read_text() for file in files] == ["cleaned up", "cleaned up"]


def test_what_stopping_cuts_short_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stop_when_begun(wait_with_a_failing_finalizer, [str(tmp_path / name) for name in "ab"])
    assert capfd.readouterr().err == ""


def test_a_worker_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "GRACE_SECONDS", 0.5)
    start = time.monotonic()
    stop_when_begun(ignore_the_end, [str(tmp_path / name) for name in "ab"])
    assert time.monotonic() - start < SOON


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process_that_started_them(how: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "file"
    code = f"""
import signal
from bertdata.io.process_pool import run_all
from tests.bertdata.io.test_process_pool import write_until_stopped
list(run_all(write_until_stopped, [{str(file)!r}, {str(tmp_path / "other")!r}], 2))
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": "."})
    deadline = time.monotonic() + 3 * SOON
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(how)
    process.wait(SOON)
    while file.read_text() != "cleaned up":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def tell_and_wait(item: tuple[int, Path], tell: ReportAmount) -> int:
    """Tell of an amount, then wait until the parent has heard of it, which makes the file."""
    amount, heard = item
    tell(amount)
    deadline = time.monotonic() + SOON
    while not heard.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return amount


@pytest.mark.parametrize("workers", [1, 2])
def test_what_an_item_tells_is_heard_while_it_is_in_work(workers: int, tmp_path: Path) -> None:
    heard, sums = tmp_path / "heard", []

    def listen(amount: int) -> None:
        sums.append(amount)
        if amount == (7 if workers == 1 else 12):  # all that are in work have told
            heard.touch()

    items = [(7, heard), (5, heard)]
    assert sorted(run_all_with_progress(tell_and_wait, items, workers, listen)) == [5, 7]
    assert heard.exists()
    assert 12 in sums or workers == 1


def test_an_item_that_tells_often_is_heard_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(worker_process, "monotonic", lambda: next(clock))
    monkeypatch.setattr(worker_process, "REPORT_SECONDS", 10)
    sums: list[int] = []
    list(
        run_all_with_progress(lambda item, tell: [tell(amount) for amount in range(30)], [0], 1, sums.append)
    )
    assert sums == [0, 10, 20]


# Limits


def work_for_ever_at_three(item: int) -> int:
    with work_limits.limit_cpu_time(f"item {item}", 0.5):
        if item == 3:
            9**9**9
    return item


def fill_memory_at_three(item: int) -> int:
    with work_limits.limit_cpu_time(f"item {item}", 600):
        if item == 3:
            data = b"x" * (1 << 29)
            time.sleep(600)
            assert data
    return item


def die_at_three(item: int) -> int:
    with work_limits.limit_cpu_time(f"item {item}", 600):
        return kill_itself_at_three(item)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("work", "limit"),
    [(work_for_ever_at_three, "CPU"), (fill_memory_at_three, "memory"), (die_at_three, "")],
)
def test_a_worker_that_is_ended_is_told_with_its_work_and_limit(
    work: Callable[[int], int], limit: str, workers: int
) -> None:
    with ProcessPool(workers, apart=True, memory_bytes=256 << 20) as pool:
        results = pool.in_order(work, range(20))
        with pytest.raises(WorkerDied) as raised:
            list(results)
    assert (raised.value.work, raised.value.limit) == ("item 3", limit)


def test_one_worker_may_be_a_process_of_its_own() -> None:
    with ProcessPool(1, apart=True) as pool:
        assert os.getpid() not in {result for _, result in pool.in_order(process_id, range(3))}


def test_limits_of_one_piece_of_work_do_not_add_up_with_the_next() -> None:
    with ProcessPool(1, apart=True) as pool:
        assert [result for _, result in pool.in_order(work_a_little, range(8))] == list(range(8))


def work_a_little(item: int) -> int:
    with work_limits.limit_cpu_time(f"item {item}", 0.5):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
    return item
