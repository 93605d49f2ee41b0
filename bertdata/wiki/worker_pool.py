"""The workers of an extraction: threads for the kernels, processes for the Python engines."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from bertdata._native import Engine, use_native
from bertdata.io.process_pool import ProcessPool
from bertdata.io.thread_pool import ThreadPool

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerPool(Protocol):
    """Results in order, with a bounded window, as ``io.process_pool`` says."""

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Generator[tuple[Item, Result], None, None]: ...


class WorkerPools(NamedTuple):
    """work: for pages. reading: for decompression. The same, or this thread."""

    work: WorkerPool
    reading: WorkerPool


@contextmanager
def open_pools(engine: Engine, workers: int, memory_bytes: int) -> Iterator[WorkerPools]:
    """The workers, started at the first item.

    Python engines work in processes apart, which are ended for a page beyond its limits, of which
    memory_bytes is one. What a single one leaves idle, this process, decompresses the dump for it.
    """
    if use_native(engine):
        with ThreadPool(workers) as threads:
            yield WorkerPools(threads, threads)
        return
    with ProcessPool(workers, apart=True, memory_bytes=memory_bytes) as processes:
        yield WorkerPools(processes, processes if workers > 1 else ProcessPool(1))
