"""Rules for the pages of a dump: which pages are left out, and limits for the work on all others.

For a few small pages, wikiextractor takes hours or all memory, because of comments that never end, or
templates that double a text again and again. If such pages were skipped automatically, the output would
depend on the speed of the machine. Instead, the run ends with an error that names the page and recommends
``--skip-page``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bertdata.errors import BertDataError, InputError
from bertdata.io import work_limits
from bertdata.io.worker_process import WorkerDied

MAX_WORK = 1 << 34
"""Most work of a kernel on a page, in bytes that are scanned or copied. It takes about 10 seconds."""


class PageLimits(NamedTuple):
    """Limits for the work on a page. Real pages of Wikipedia stay far below them.

    cpu_seconds: largest CPU time in seconds.
    memory_bytes: how much the memory of a worker may grow, in bytes. It is measured only on systems with
        /proc.
    """

    cpu_seconds: float = 600
    memory_bytes: int = 4 << 30


LIMITS = PageLimits()


class PageRules(NamedTuple):
    """Rules for the pages of a dump: which pages are left out, and limits for the work on all others.

    dump: path of the dump, for error messages.
    skip_pages: ids of pages to leave out.
    limits: limits for the work on a page.
    """

    dump: str
    skip_pages: tuple[str, ...] = ()
    limits: PageLimits = LIMITS

    @contextmanager
    def limit_page(self, page_id: str, title: str) -> Iterator[None]:
        """Limit the CPU time while a block of code works on a page.

        This has no effect outside a worker process.

        page_id, title: id and title of the page, for the error message.
        """
        name = f"{page_id}\t{title}"
        try:
            with work_limits.limit_cpu_time(name, self.limits.cpu_seconds):
                yield
        except MemoryError:
            raise self._make_error_with_remedy(name, "took more memory than there is") from None

    def make_error(self, death: WorkerDied) -> BertDataError:
        """Make the error for a worker process that has died. It names the page on which the worker worked.

        death: what is known about the worker's end.
        """
        # If the worker did not work on a page, it died for another reason, and its error stays unchanged.
        if not death.work:
            return death
        if death.limit == work_limits.CPU:
            return self._make_error_with_remedy(
                death.work, f"took more than {self.limits.cpu_seconds:g} CPU seconds"
            )
        if death.limit == work_limits.MEMORY:
            gibibytes = self.limits.memory_bytes / (1 << 30)
            return self._make_error_with_remedy(death.work, f"took more than {gibibytes:g} GiB of memory")
        page, remedy = _format_page(death.work), _format_skip_flag(death.work)
        return WorkerDied(f"{death}; if one dies at {page} again, {remedy} leaves that page out")

    def make_limit_error(self, page_id: str, title: str, found: str) -> InputError:
        """Make the error for a page that exceeds a limit.

        page_id, title: id and title of the page.
        found: what happened, for example "took more than 600 CPU seconds".
        """
        return self._make_error_with_remedy(f"{page_id}\t{title}", found)

    def _make_error_with_remedy(self, name: str, found: str) -> InputError:
        """Make the error for a page at which the run ends.

        It names the flag with which the user can leave it out.

        name: id and title of the page, separated by a tab.
        found: what happened.
        """
        return InputError(
            f"{self.dump}: {_format_page(name)}: {found}; run the same command with "
            f"{_format_skip_flag(name)} to leave it out: what is finished is kept"
        )


def _format_page(name: str) -> str:
    """Format a page for an error message.

    name: id and title of the page, separated by a tab.
    """
    page_id, _, title = name.partition("\t")
    return f"page {title!r} (id {page_id})"


def _format_skip_flag(name: str) -> str:
    """Return the flag that leaves a page out, quoted for the shell.

    name: id and title of the page, separated by a tab.
    """
    import shlex  # shlex is imported only here, because it is slow to import and rarely needed.

    page_id, _, _ = name.partition("\t")
    return f"--skip-page {shlex.quote(page_id)}"
