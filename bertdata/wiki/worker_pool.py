"""Workers of an extraction: threads for the kernels, processes for the Python engines."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from bertdata._native import Engine, use_native
from bertdata.io.process_pool import ProcessPool
from bertdata.io.thread_pool import ThreadPool

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerPool(Protocol):
    """Pool of workers that applies a function to items, and yields item and result in order.

    Only a bounded number of items is read ahead, so memory stays bounded.
    """

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Generator[tuple[Item, Result], None, None]: ...


class WorkerPools(NamedTuple):
    """Pools of workers of an extraction. Both fields may be the same pool.

    work: pool that extracts pages.
    reading: pool that decompresses the dump.
    """

    work: WorkerPool
    reading: WorkerPool


@contextmanager
def open_pools(engine: Engine, workers: int, memory_bytes: int) -> Iterator[WorkerPools]:
    """Open the pools of an extraction. Workers start when the first item arrives.

    Python engines run in separate processes, which are killed when a page exceeds its limits. With a single
    worker process, this process is otherwise idle and decompresses the dump.

    memory_bytes: memory limit of a worker process.
    """
    if use_native(engine):
        with ThreadPool(workers) as threads:
            yield WorkerPools(threads, threads)
        return
    with ProcessPool(workers, apart=True, memory_bytes=memory_bytes) as processes:
        yield WorkerPools(processes, processes if workers > 1 else ProcessPool(1))
