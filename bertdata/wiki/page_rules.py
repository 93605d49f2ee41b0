"""Rules of a run for single pages: those to leave out, and limits for the others.

The package's code takes hours, or all memory, for some small pages (comments that never end, templates that
double a text again and again). To skip such a page by itself would make the articles depend on the
machine's speed, so the run ends, names the page, and asks for ``--skip-page``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bertdata.errors import BertDataError, InputError
from bertdata.io import work_limits
from bertdata.io.worker_process import WorkerDied

MAX_WORK = 1 << 34
"""Bytes that a kernel may handle for one page, each as often as it is scanned or copied: some 10 seconds."""


class PageLimits(NamedTuple):
    """Limits of the work on one page, far above what a page of Wikipedia takes.

    memory_bytes: growth of the worker's memory, watched where /proc tells it.
    """

    cpu_seconds: float = 600
    memory_bytes: int = 4 << 30


LIMITS = PageLimits()


class PageRules(NamedTuple):
    """Rules for each page of the dump at that path. ``skip_pages`` are page ids."""

    dump: str
    skip_pages: tuple[str, ...] = ()
    limits: PageLimits = LIMITS

    @contextmanager
    def limited(self, page_id: str, title: str) -> Iterator[None]:
        """Work on the page: within the limits in a worker process, else without."""
        name = f"{page_id}\t{title}"
        try:
            with work_limits.limited(name, self.limits.cpu_seconds):
                yield
        except MemoryError:
            raise self._too_much(name, "took more memory than there is") from None

    def error(self, death: WorkerDied) -> BertDataError:
        """The error for a worker's death: with its page, if it was at one."""
        if not death.work:
            return death
        if death.limit == work_limits.CPU:
            return self._too_much(death.work, f"took more than {self.limits.cpu_seconds:g} CPU seconds")
        if death.limit == work_limits.MEMORY:
            gibibytes = self.limits.memory_bytes / (1 << 30)
            return self._too_much(death.work, f"took more than {gibibytes:g} GiB of memory")
        page, remedy = _page(death.work), _remedy(death.work)
        return WorkerDied(f"{death}; if one dies at {page} again, {remedy} leaves that page out")

    def too_much(self, page_id: str, title: str, found: str) -> InputError:
        """The error for a page that breaks a limit. found: how it does, after "page ...: "."""
        return self._too_much(f"{page_id}\t{title}", found)

    def _too_much(self, name: str, found: str) -> InputError:
        return InputError(
            f"{self.dump}: {_page(name)}: {found}; run the same command with {_remedy(name)} to leave it "
            "out: what is finished is kept"
        )


def _page(name: str) -> str:
    page_id, _, title = name.partition("\t")
    return f"page {title!r} (id {page_id})"


def _remedy(name: str) -> str:
    import shlex  # slow to import

    page_id, _, _ = name.partition("\t")
    return f"--skip-page {shlex.quote(page_id)}"
