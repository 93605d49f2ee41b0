"""Join the results of a dump's ranges: check that they fit, add up reports, distribute the articles."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bertdata.errors import InputError
from bertdata.wiki.articles.files import cut_files
from bertdata.wiki.articles.report import MAX_FAULTS, ExtractReport
from bertdata.wiki.extractor import START, BlockState
from bertdata.wiki.ranges.facts import RangeFacts
from bertdata.wiki.ranges.links import check_links
from bertdata.wiki.ranges.work import RangeArticles


class RangeResult(Protocol):
    """Result of a range, which contains the facts about the range."""

    @property
    def facts(self) -> RangeFacts: ...


Result = TypeVar("Result", bound=RangeResult)


def check_sequence(
    dump: str, results: Iterable[Result], again: Callable[[int, BlockState], Result]
) -> Iterator[Result]:
    """Sort the results of all ranges, check that they join without a gap, and yield them in order.

    again: function that extracts a range once more. It gets the number of the range and the true state at its
    start, and is called if it was wrong to extract the range as if the dump started there.

    Raises InputError if a part of the dump was read twice or not at all.
    """
    ordered = sorted(results, key=lambda result: result.facts.number)
    assert [result.facts.number for result in ordered] == list(range(len(ordered)))
    check_links(dump, [result.facts.link for result in ordered])
    # Every range was extracted as if the dump started there. Go through the ranges in order, which gives the
    # true state at the start of each. Repeat a range whose result is wrong for its true state.
    state = START
    for result in ordered:
        if not result.facts.are_valid_after(state):
            result = again(result.facts.number, state)
        state = result.facts.find_state_after(state)
        yield result


def check_digests(dump: str, first: Sequence[int], second: Sequence[int]) -> None:
    """Raise InputError if a range's text changed between the first and the second pass over the dump.

    first, second: CRC-32 of each range's text in the two passes.
    """
    if list(first) != list(second):
        raise make_changed_error(dump)


def make_changed_error(dump: str) -> InputError:
    """Make the error for a dump that changed during the run."""
    return InputError(f"{dump}: was changed while it was being read; run the same command again")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArticlePiece:
    """Consecutive articles in the file that a range wrote: ``bytes`` bytes from byte ``start`` on."""

    path: str
    start: int
    bytes: int


def deal_out_articles(ranges: Sequence[RangeArticles]) -> Iterator[list[ArticlePiece]]:
    """Distribute the articles of all ranges over output files, and yield the pieces of each file."""
    # Output files are cut by the sizes of the articles, not at the ends of ranges. Two generators run over
    # the same articles: ``cut_files`` reads the sizes to decide how many articles the next file gets, and
    # ``waiting`` then yields these articles. Adjacent articles of one range are merged into a piece. For
    # example, range 0 has articles of [600 kB, 600 kB] and range 1 of [100 kB]. The first file then gets 600
    # kB from range 0, and the second file 600 kB from range 0 and 100 kB from range 1.
    sizes = (size for found in ranges for size in found.sizes)
    waiting = ((found.path, size) for found in ranges for size in found.sizes)
    starts: dict[str, int] = {}
    for articles in cut_files(sizes):
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
    """Add up the reports of all ranges."""
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
