"""Threads give results in order, with a bounded window, and none is left behind however a pass ends."""

import itertools
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import nullcontext
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import BertDataError
from bertdata.io.thread_pool import SWITCH_SECONDS, WINDOW, ThreadPool

LONG = 60.0
"""Seconds after which a wait for something that must happen is a failure."""

workers = st.integers(1, 5)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.enumerate()
    yield
    assert set(threading.enumerate()) <= set(before)  # other tests' threads may end meanwhile


class Failed(Exception):
    """An error of the function."""


def test_threads_take_turns_more_often_while_a_pool_has_some() -> None:
    usual = sys.getswitchinterval()
    with ThreadPool(1) as alone, ThreadPool(3) as pool:
        assert [*alone.in_order(lambda _: sys.getswitchinterval(), "a")] == [("a", usual)]
        assert [*pool.in_order(lambda _: sys.getswitchinterval(), "ab")] == [
            ("a", pytest.approx(SWITCH_SECONDS)),
            ("b", pytest.approx(SWITCH_SECONDS)),
        ]
    assert sys.getswitchinterval() == usual


@given(workers=workers, items=st.lists(st.integers()))
def test_results_come_in_the_items_order(workers: int, items: list[int]) -> None:
    with ThreadPool(workers) as pool:
        assert list(pool.in_order(lambda item: -item, items)) == [(item, -item) for item in items]


@given(workers=workers, numbers=st.lists(st.integers(0, 30), max_size=4))
def test_items_may_come_from_another_pass_of_the_pool(workers: int, numbers: list[int]) -> None:
    with ThreadPool(workers) as pool:
        squares = (square for _, square in pool.in_order(lambda n: n * n, range(40)))
        roots = [(round(square**0.5), root) for square, root in pool.in_order(lambda n: n**0.5, squares)]
        assert roots == [(n, n) for n in range(40)]
        for number in numbers:  # and passes follow one another
            assert [result for _, result in pool.in_order(str, range(number))] == [*map(str, range(number))]


@given(workers=workers, wanted=st.integers(0, 40))
def test_of_endless_items_a_window_is_taken(workers: int, wanted: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    with ThreadPool(workers) as pool:
        results = list(itertools.islice(pool.in_order(str, items()), wanted))
    assert [result for _, result in results] == [str(number) for number in range(wanted)]
    assert len(taken) <= (wanted + WINDOW * workers if wanted else 0)


@pytest.mark.parametrize("workers", [2, 4])
def test_all_workers_work_at_once_and_the_calling_thread_is_one_of_them(workers: int) -> None:
    meeting = threading.Barrier(workers)

    def meet(_: int) -> int:
        meeting.wait(LONG)  # each waits for all
        return threading.get_ident()

    with ThreadPool(workers) as pool:
        threads = {thread for _, thread in pool.in_order(meet, range(3 * workers))}
    assert len(threads) == workers
    assert threading.get_ident() in threads


def test_one_worker_is_the_calling_thread_and_takes_an_item_at_a_time() -> None:
    taken: list[int] = []
    items = (taken.append(number) or number for number in itertools.count())  # type: ignore[func-returns-value]
    with ThreadPool(1) as pool:
        results = pool.in_order(lambda _: (threading.get_ident(), threading.active_count()), items)
        for number in range(3):
            assert next(results) == (number, (threading.get_ident(), threading.active_count()))
            assert len(taken) == number + 1


@given(workers=workers, count=st.integers(1, 30), bad=st.integers(0, 29))
def test_an_error_is_raised_in_its_place_and_the_pool_goes_on(workers: int, count: int, bad: int) -> None:
    def fail(item: int) -> int:
        if item == bad:
            raise Failed(item)
        return item

    received: list[int] = []
    with ThreadPool(workers) as pool:
        with pytest.raises(Failed, match=f"^{bad}$") if bad < count else nullcontext():
            for _, result in pool.in_order(fail, range(count)):
                received.append(result)
        assert received == list(range(min(bad, count)))
        assert list(pool.in_order(abs, [-1])) == [(-1, 1)]


@given(workers=workers, good=st.integers(0, 20))
def test_an_error_of_the_source_is_raised(workers: int, good: int) -> None:
    def items() -> Iterator[int]:
        yield from range(good)
        raise Failed

    with ThreadPool(workers) as pool, pytest.raises(Failed):
        list(pool.in_order(abs, items()))


@pytest.mark.parametrize("leave", ["close the pass", "leave the pool", "an error"])
def test_what_has_not_begun_is_never_begun(leave: str) -> None:
    begun: list[int] = []
    may_end = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        if item:
            assert may_end.wait(LONG)
        return item

    with pytest.raises(Failed) if leave == "an error" else nullcontext(), ThreadPool(2) as pool:
        results = pool.in_order(work, itertools.count())
        assert next(results) == (0, 0)
        if leave == "close the pass":
            results.close()
        may_end.set()  # at most two items are in work
        if leave == "an error":
            raise Failed
    assert sorted(begun) == list(range(len(begun)))
    assert len(begun) < WINDOW * 2 + 1
    if leave != "close the pass":
        results.close()


def test_a_pass_goes_not_on_when_its_pool_has_ended() -> None:
    may_end = threading.Event()
    with ThreadPool(2) as pool:
        results = pool.in_order(lambda item: item == 0 or may_end.wait(LONG), itertools.count())
        next(results)
        may_end.set()
    with pytest.raises(CancelledError):
        list(results)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
@pytest.mark.parametrize("works", [True, False])
def test_a_signal_in_the_main_thread_ends_its_work_and_its_wait(
    number: signal.Signals, error: type[BaseException], works: bool
) -> None:
    handled, begun = threading.Event(), threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        handled.set()
        raise error

    def work(item: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(LONG)
            if not works:
                return  # to the wait for the other thread's result
        else:
            begun.set()
            os.kill(os.getpid(), number)
        assert handled.wait(LONG)

    before = signal.signal(number, handle)
    try:
        with pytest.raises(error), ThreadPool(2) as pool:
            list(pool.in_order(work, range(1000 if works else 4)))
    finally:
        signal.signal(number, before)


def test_threads_that_cannot_be_started_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with ThreadPool(3) as pool, pytest.raises(BertDataError, match="cannot start 3 workers: .*; give fewer"):
        list(pool.in_order(abs, [1]))
