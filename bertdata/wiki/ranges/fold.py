"""Joins the results for the ranges of a dump.

It checks that the ranges fit together, adds up their reports, and distributes their articles over files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bertdata.errors import InputError
from bertdata.wiki.articles.files import count_articles_per_file
from bertdata.wiki.articles.report import MAX_FAULTS, ExtractReport
from bertdata.wiki.extractor import START, BlockState
from bertdata.wiki.ranges.facts import RangeFacts
from bertdata.wiki.ranges.links import check_links
from bertdata.wiki.ranges.work import RangeArticles


class RangeResult(Protocol):
    """Interface of the result for a range, which contains the facts about the range."""

    @property
    def facts(self) -> RangeFacts:
        """Facts about the range."""


Result = TypeVar("Result", bound=RangeResult)


def check_sequence(
    dump: str, results: Iterable[Result], again: Callable[[int, BlockState], Result]
) -> Iterator[Result]:
    """Sort the results for all ranges, check that no part of the dump was missed or read twice, and yield
    them in order.

    dump: path of the dump, for error messages.
    results: the results in any order.
    again: function that extracts a range once more, and returns the new result. Its arguments are the number
        of the range and the true state before it. It is called for a range whose result is wrong because it
        was extracted as if the dump started there.

    Raises InputError if a part of the dump was missed or read twice.
    """
    ordered = sorted(results, key=lambda result: result.facts.number)
    assert [result.facts.number for result in ordered] == list(range(len(ordered)))
    check_links(dump, [result.facts.link for result in ordered])
    # Every range was extracted as if the dump started there. Go through the ranges in order, so that the true
    # state before each range is known. If this state makes the result of a range wrong, extract the range
    # again.
    state = START
    for result in ordered:
        if not result.facts.are_valid_after(state):
            result = again(result.facts.number, state)
        state = result.facts.find_state_after(state)
        yield result


def check_digests(dump: str, first: Sequence[int], second: Sequence[int]) -> None:
    """Raise InputError if the text of a range changed between the two passes over the dump.

    first: CRC-32 of the text of each range in the first pass.
    second: CRC-32 of the text of each range in the second pass.
    """
    if list(first) != list(second):
        raise make_changed_error(dump)


def make_changed_error(dump: str) -> InputError:
    """Make the error for a dump that changed during the run."""
    return InputError(f"{dump}: was changed while it was being read; run the same command again")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArticlePiece:
    """Consecutive articles in the file that the worker of a range has written.

    path: path of that file.
    start: byte of that file at which the articles start.
    bytes: number of bytes of the articles.
    """

    path: str
    start: int
    bytes: int


def distribute_articles(ranges: Sequence[RangeArticles]) -> Iterator[list[ArticlePiece]]:
    """Distribute the articles of all ranges over output files.

    Yields for each output file the pieces it consists of.
    """
    # Where an output file ends depends only on the sizes of the articles, not on the ranges. Two generators
    # go through the same articles. ``count_articles_per_file`` reads the sizes, and decides how many articles
    # the next file gets. ``waiting`` then yields these articles. Consecutive articles of the same range are
    # merged into a single piece.
    # For example, range 0 has two articles of 600 kB each, and range 1 has an article of 100 kB. The first
    # file then gets 600 kB from range 0. The second file gets 600 kB from range 0 and 100 kB from range 1.
    sizes = (size for found in ranges for size in found.sizes)
    waiting = ((found.path, size) for found in ranges for size in found.sizes)
    starts: dict[str, int] = {}
    for articles in count_articles_per_file(sizes):
        pieces: list[ArticlePiece] = []
        for _ in range(articles):
            path, size = next(waiting)
            start = starts.get(path, 0)
            starts[path] = start + size
            if pieces and pieces[-1].path == path:
                start, size = pieces[-1].start, pieces[-1].bytes + size
                pieces.pop()
            pieces.append(ArticlePiece(path=path, start=start, bytes=size))
        yield pieces


def join_reports(reports: Iterable[ExtractReport]) -> ExtractReport:
    """Add up the reports on all ranges."""
    whole = ExtractReport()
    for report in reports:
        whole.pages += report.pages
        whole.written += report.written
        whole.empty += report.empty
        whole.by_package += report.by_package
        whole.several_revisions += report.several_revisions
        for reason, number in report.skipped.items():
            whole.skipped[reason] = whole.skipped.get(reason, 0) + number
        whole.faults += report.faults[: MAX_FAULTS - len(whole.faults)]
    return whole
