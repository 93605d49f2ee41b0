"""Results of several workers in the order of the work."""

import multiprocessing
import time

import pytest

from bertdata.errors import InputError
from bertdata.io.process_pool import run_in_order


def wait_and_return(item: int) -> int:
    time.sleep(0.05 if item == 0 else 0)
    return item


def fail_at_three(item: int) -> int:
    if item == 3:
        raise InputError("item 3")
    return item


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(run_in_order(wait_and_return, range(20), workers)) == list(range(20))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_in_its_place(workers: int) -> None:
    results = run_in_order(fail_at_three, range(20), workers)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InputError, match="item 3"):
        next(results)


def test_a_reader_that_leaves_early_leaves_no_worker_and_other_processes_alone() -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=[600], daemon=True)
    other.start()
    before = set(multiprocessing.active_children())
    assert other in before
    results = run_in_order(wait_and_return, range(1000), 2)
    assert next(results) == 0
    results.close()
    deadline = time.monotonic() + 30
    while set(multiprocessing.active_children()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set(multiprocessing.active_children()) == before
    other.terminate()
    other.join()
