"""The ranges of a dump joined: checked in sequence, reported as one, their articles dealt out to files."""

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
    """A result that says how its range fits the one before."""

    @property
    def facts(self) -> RangeFacts: ...


Result = TypeVar("Result", bound=RangeResult)


def in_sequence(
    dump: str, results: Iterable[Result], again: Callable[[int, BlockState], Result]
) -> Iterator[Result]:
    """The results of all ranges in order. InputError where they do not follow one another.

    again: works on a range once more, from the state at its begin, where START was not right.
    """
    ordered = sorted(results, key=lambda result: result.facts.number)
    assert [result.facts.number for result in ordered] == list(range(len(ordered)))
    check_links(dump, [result.facts.link for result in ordered])
    state = START
    for result in ordered:
        if not result.facts.follows(state):
            result = again(result.facts.number, state)
        state = result.facts.state_behind(state)
        yield result


def check_digests(dump: str, first: Sequence[int], second: Sequence[int]) -> None:
    """InputError if the dump's text, range by range, is another than in the first pass."""
    if list(first) != list(second):
        raise was_changed(dump)


def was_changed(dump: str) -> InputError:
    """The error for a dump that is not what it was at the start."""
    return InputError(f"{dump}: was changed while it was being read; run the same command again")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArticlePiece:
    """Successive articles of one file for all articles of a range: ``bytes`` from ``start`` on."""

    path: str
    start: int
    bytes: int


def deal_out_articles(ranges: Sequence[RangeArticles]) -> Iterator[list[ArticlePiece]]:
    """The pieces of each output file, in order."""
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


def joined_report(reports: Iterable[ExtractReport]) -> ExtractReport:
    """The report on the pages of all ranges, in order."""
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
