"""Opens the workers of an extraction: threads for the kernels, processes for the Python engines."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from bertdata._native import Engine, use_native
from bertdata.io.process_pool import ProcessPool
from bertdata.io.thread_pool import ThreadPool

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerPool(Protocol):
    """Pool of workers that call a function for each of many items in parallel.

    Only a limited number of items are read ahead, so that the memory in use is limited.
    """

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Generator[tuple[Item, Result], None, None]:
        """Call the function for each item, and yield the items in order, each with its result."""


class WorkerPools(NamedTuple):
    """The pools of workers of an extraction. Both fields may be the same pool.

    work: pool that extracts pages.
    reading: pool that decompresses the dump.
    """

    work: WorkerPool
    reading: WorkerPool


@contextmanager
def open_pools(engine: Engine, workers: int, memory_bytes: int) -> Iterator[WorkerPools]:
    """Open the pools of workers of an extraction.

    A Python engine runs in separate processes, which are killed if a page exceeds its limits. If there is
    only a single worker process, this process decompresses the dump, because it is idle otherwise.

    workers: number of threads (for the kernels) or processes (for Python).
    memory_bytes: limit for the memory of a worker process in bytes.
    """
    if use_native(engine):
        with ThreadPool(workers) as threads:
            yield WorkerPools(threads, threads)
        return
    with ProcessPool(workers, apart=True, memory_bytes=memory_bytes) as processes:
        yield WorkerPools(processes, processes if workers > 1 else ProcessPool(1))
