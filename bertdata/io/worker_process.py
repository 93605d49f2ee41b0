"""A worker process of ``process_pool``: the parent's handle, and the loop that runs in the worker."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, sleep
from types import FrameType
from typing import Any

from bertdata.errors import BertDataError
from bertdata.io import work_limits
from bertdata.io.freed_memory import keep_less_freed_memory
from bertdata.io.signals import INTERRUPTING

REPORT_SECONDS = 0.1
"""Smallest time in seconds between two progress messages about an item."""

ReportAmount = Callable[[int], None]
"""Progress callback. Its argument is the amount of the item's work that is done so far, in any unit."""

GRACE_SECONDS = 5.0
"""Seconds in which a terminated worker may run its ``finally`` blocks before it is killed."""

WATCH_SECONDS = 0.25
"""Seconds between two checks of a worker's memory, if its memory is limited."""


class WorkerDied(BertDataError):
    """Raised when a worker process was killed, for example because the system ran out of memory.

    how: description of the process and its exit.
    work: name of its current piece of work (see ``work_limits``), or empty.
    limit: name of the limit that it exceeded (CPU or memory), or empty.
    """

    def __init__(self, message: str | None = None, *, how: str = "", work: str = "", limit: str = "") -> None:
        super().__init__(
            message
            or f"a worker process died before its work was done ({f'{how}: ' * bool(how)}killed, or out of "
            "memory); run the same command again: what is finished is kept"
        )
        self.work = work
        self.limit = limit


class PoolTask:
    """An item submitted to a pool, with its result or error once it is done.

    tells: True if the function takes a progress callback as its second argument.
    amount: progress that the function last reported.
    dropped: True if nobody wants the result any more, so that the item need not be started.
    """

    def __init__(self, function: Callable[..., Any], item: Any, tells: bool) -> None:
        self.function = function
        self.item = item
        self.tells = tells
        self.amount = 0
        self.dropped = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def value(self) -> Any:
        """Return the result, or raise the worker's error."""
        if self.error is not None:
            raise self.error
        return self.result


@contextmanager
def block_signals() -> Iterator[None]:
    """Block SIGINT and SIGTERM while workers are started.

    Each worker unblocks them once its handlers are set.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """The parent's handle of a worker process, with one end of the pipe between them."""

    def __init__(self, context: Any, others: list["WorkerProcess"], memory_bytes: int | None) -> None:
        self._name = context.RawArray("c", work_limits.NAME_BYTES)
        self._connection, theirs = context.Pipe()
        # A forked worker inherits the parent's ends of all pipes so far. It must close them. Otherwise the
        # pipe of a worker would stay open through its siblings after the parent is gone, and the worker
        # would wait forever.
        inherited = [worker._connection for worker in [*others, self]]
        forked = context.get_start_method() == "fork"
        arguments = [theirs, inherited if forked else [], self._name]
        self.process = context.Process(target=_run_worker, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self._over_memory = False
        self._memory_bytes = memory_bytes and memory_bytes + (
            work_limits.measure_private_memory(self.process.pid) or 0
        )

    def run_task(self, task: PoolTask, on_amount: ReportAmount) -> tuple[Any, BaseException | None]:
        """Run a task in the worker. Returns the result and the error, one of which is None.

        Raises WorkerDied if the process ends before it has answered.

        on_amount: function that is called with the amount in each progress message of the task.
        """
        from multiprocessing.reduction import ForkingPickler

        try:
            work = ForkingPickler.dumps((task.function, task.item, task.tells))
        except Exception as error:
            return None, error
        try:
            self._connection.send_bytes(work)
            while isinstance(message := self._receive_message(), int):
                on_amount(message)
        except (EOFError, OSError):
            raise self._describe_death() from None
        result, failure, trace = message
        if failure is not None:
            failure.__cause__ = _WorkerTraceback(trace)
        return result, failure

    def _receive_message(self) -> Any:
        """Return the next message: a progress amount, or the final (result, error, traceback)."""
        self._wait_for_message()
        if not self._connection.poll():
            raise EOFError
        return self._connection.recv()

    def _wait_for_message(self) -> None:
        """Wait for a message or the end of the process. Kill the process if it exceeds its memory limit."""
        from multiprocessing.connection import wait

        ends = [self._connection, self.process.sentinel]
        while not wait(ends, None if self._memory_bytes is None else WATCH_SECONDS):
            if (work_limits.measure_private_memory(self.process.pid) or 0) > (self._memory_bytes or 0):
                self._over_memory = True
                self.process.kill()
                self.process.join()
                return

    def _describe_death(self) -> WorkerDied:
        """Return the WorkerDied error for the ended process."""
        self.process.join(GRACE_SECONDS)
        status = self.process.exitcode
        over_time = status == -signal.SIGPROF
        limit = work_limits.MEMORY if self._over_memory else work_limits.CPU if over_time else ""
        by = f"exit status {status}" if status is None or status >= 0 else signal.Signals(-status).name
        how = f"process {self.process.pid}, {by}"
        return WorkerDied(how=how, work=self._name.value.decode(errors="replace"), limit=limit)

    def close(self) -> None:
        """Close the pipe, which makes an idle worker end, and wait for the process."""
        self._connection.close()
        self.process.join()


class _WorkerTraceback(Exception):
    """The worker's traceback as text, attached as the cause of its error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _run_worker(connection: Any, inherited: list[Any], name: Any) -> None:
    """Receive items from the pipe and send back results, until the pipe is closed.

    Runs in the worker process.
    """
    keep_less_freed_memory()
    work_limits.share_work_name(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTING)
    for other in inherited:
        other.close()
    try:
        threading.Thread(target=_end_with_parent, args=[threading.get_ident()], daemon=True).start()
    except RuntimeError:  # out of memory
        os._exit(1)
    with suppress(EOFError, OSError, MemoryError):  # the parent has closed the pipe or is gone
        while True:
            function, item, tells = connection.recv()
            call = (
                partial(function, item, RateLimitedReport(connection.send))
                if tells
                else partial(function, item)
            )
            connection.send_bytes(_pickle_outcome(call))
            del function, item, call


class RateLimitedReport:
    """A progress callback that skips calls within REPORT_SECONDS of the last call, to save time."""

    def __init__(self, tell: ReportAmount) -> None:
        self._tell = tell
        self._next = 0.0

    def __call__(self, amount: int) -> None:
        if (now := monotonic()) >= self._next:
            self._next = now + REPORT_SECONDS
            self._tell(amount)


def _pickle_outcome(call: Callable[[], Any]) -> Any:
    """Make the call. Return its result or its error with the traceback, pickled.

    If SIGTERM arrives during the call, the process ends after all ``finally`` blocks have run.
    """
    import pickle
    from multiprocessing.reduction import ForkingPickler

    try:
        try:
            signal.signal(signal.SIGTERM, _handle_sigterm)
            return ForkingPickler.dumps((call(), None, ""))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # an idle worker has nothing to clean up
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        from traceback import format_exception  # imported here because it is slow to import

        trace = "".join(format_exception(error))
        try:
            return pickle.dumps((None, pickle.loads(pickle.dumps(error)), trace))
        except Exception:  # the error cannot be pickled: send its text
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}"), trace))


def _handle_sigterm(signum: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: raise SystemExit, so that ``finally`` blocks run."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second SIGTERM must not interrupt the cleaning up
    # objects of the interrupted work may fail while Python deletes them
    sys.excepthook = sys.unraisablehook = _ignore_error
    sys.exit(128 + signum)


def _ignore_error(*error: object) -> None:
    """Ignore an error that would otherwise be printed. Used in place of ``sys.excepthook``."""


def _end_with_parent(main_thread: int) -> None:
    """End this worker when the parent process is gone. Runs in a thread.

    The worker first gets SIGTERM. If it has not ended GRACE_SECONDS later, it exits at once.
    """
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        signal.pthread_kill(main_thread, signal.SIGTERM)
        sleep(GRACE_SECONDS)
        os._exit(1)
