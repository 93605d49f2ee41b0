"""Rules for single pages: pages to leave out, and limits for all others.

wikiextractor takes hours, or all memory, for a few small pages (comments that never end, templates that
double a text again and again). If such pages were skipped automatically, the output would depend on the speed
of the machine. Therefore the run ends with an error that names the page and asks for ``--skip-page``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bertdata.errors import BertDataError, InputError
from bertdata.io import work_limits
from bertdata.io.worker_process import WorkerDied

MAX_WORK = 1 << 34
"""Largest work of a kernel on one page, in bytes scanned or copied. This takes about 10 seconds."""


class PageLimits(NamedTuple):
    """Limits of the work on one page. Pages of Wikipedia stay far below them.

    cpu_seconds: CPU time.
    memory_bytes: growth of the worker's memory, measured where /proc exists.
    """

    cpu_seconds: float = 600
    memory_bytes: int = 4 << 30


LIMITS = PageLimits()


class PageRules(NamedTuple):
    """Rules for each page of a dump.

    dump: path of the dump, for messages.
    skip_pages: ids of pages to leave out.
    """

    dump: str
    skip_pages: tuple[str, ...] = ()
    limits: PageLimits = LIMITS

    @contextmanager
    def limited(self, page_id: str, title: str) -> Iterator[None]:
        """Limit the time of the work on a page, if this is a worker process."""
        name = f"{page_id}\t{title}"
        try:
            with work_limits.limit_cpu_time(name, self.limits.cpu_seconds):
                yield
        except MemoryError:
            raise self._too_much(name, "took more memory than there is") from None

    def error(self, death: WorkerDied) -> BertDataError:
        """Return the error for the death of a worker. It names the page that the worker was working on."""
        # A worker that was not working on a page died for another reason, so its error is passed on.
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
        """Return the error for a page that exceeds a limit.

        found: which limit, in the words that follow "page ...: ".
        """
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
