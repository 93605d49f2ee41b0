"""The step that finds out on which day a published text was extracted, by trying all days.

Templates such as ``{{CURRENTDAY}}`` make the extracted text depend on the day.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from bertdata._native import Engine
from bertdata.config.held_out_names import make_mlperf_part_name
from bertdata.dataset.published.tables import PublishedFile, load_table
from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.steps.extract import parse_day
from bertdata.steps.progress import GivenProgress, OnProgress, StepProgress, choose_progress
from bertdata.steps.values import AnyPath, convert_path, count_workers
from bertdata.text.load_splitter import LoadSplitter
from bertdata.text.mlperf import make_sentences
from bertdata.text.mlperf_parts import plan_parts, trim_part_text
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.articles.dated_articles import DatedArticles, extract_first_articles, join_into_files
from bertdata.wiki.articles.files import make_file_name
from bertdata.wiki.settings import ExtractorName, ExtractSettings

_EXTRACTED = re.compile(r"(?:.*/)?([A-Z])([A-Z])/wiki_(\d\d)")
_YEARS = 3
"""Number of years to try if no last day is given."""


@dataclass(frozen=True, kw_only=True)
class DateSearch:
    """The days on which a text file extracted from the dump equals the published file.

    file: name of the file in the table of published files.
    figure: what was compared: md5, or size if no md5 was published.
    bytes: size of the extracted file on the first day that was tried.
    published_bytes: size of the published file.
    first: first day that was tried.
    last: last day that was tried.
    days: the days on which the extracted file is equal.
    titles: titles of pages in the file whose text may depend on the day.
    """

    file: str
    figure: str
    bytes: int
    published_bytes: int
    first: datetime.date
    last: datetime.date
    days: list[datetime.date] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the result of the search as lines to print."""
        tried = f"{(self.last - self.first).days + 1} days from {self.first} to {self.last}"
        pages = f"{len(self.titles)} pages up to its end may depend on the day"
        size = f"{self.bytes} bytes, published are {self.published_bytes}"
        if not self.titles:
            has = "the published" if self.days else "another"
            why = "no page up to its end names a day"
            return [f"{self.file}: has {has} {self.figure} on every day: {why}; {size}"]
        if self.days:
            days = ", ".join(_join_days(self.days))
            return [f"{self.file}: has the published {self.figure} on {days} (of {tried}; {pages})"]
        return [f"{self.file}: has another {self.figure} on each of {tried}; {size}; {pages}"]


def _join_days(days: list[datetime.date]) -> Iterator[str]:
    """Yield the days as text, with consecutive days as one span (``2020-01-01 to 2020-01-05``)."""
    first = last = days[0]
    for day in [*days[1:], datetime.date.min]:
        if day == last + datetime.timedelta(days=1):
            last = day
            continue
        yield str(first) if first == last else f"{first} to {last}"
        first = last = day


def find_date(
    dump: AnyPath,
    *,
    table: str,
    extractor: ExtractorName | None = None,
    date: datetime.date | str | None = None,
    until: datetime.date | str | None = None,
    templates: bool | None = None,
    skip_page: tuple[str, ...] = (),
    punkt_tables: str | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> DateSearch:
    """Find the days from ``date`` to ``until`` on which the dump's first text file has the published md5.

    If the table has the first extracted file (``AA/wiki_00``), this file is compared. Otherwise the first
    text part (``part-00000-of-00500``) is made from the extracted text, as MLPerf's programs do, and
    compared. The time of day is always midnight. Raises InputError for a damaged dump. Raises SettingsError
    if the table has neither file.

    table: table of published sizes and md5s, by name or path.
    extractor: version of WikiExtractor whose text is reproduced. None: mlperf.
    date: first day to try. None: the dump's date.
    until: last day to try. None: three years after the first.
    templates: whether to expand templates. None: as the reproduced program does.
    skip_page: ids of pages to leave out.
    punkt_tables: directory or URL of NLTK's punkt_tab tables.
    engine: "native" for the C++ kernels, "python" for the same functions in Python. None: native if
        available.
    workers: number of processes. None: one per core.
    progress: function called with a StepProgress.
    """
    first_given, last_given = parse_day(date), parse_day(until)
    settings = ExtractSettings(
        extractor=extractor or "mlperf", date=first_given, templates=templates, skip_pages=skip_page
    )
    rows = load_table(table)
    _check_dump(convert_path(dump), rows)
    target = _find_target(rows, table, LoadSplitter("3.4.5", engine, punkt_tables))
    on_progress = choose_progress(progress)

    def report_reading(stage: str, done: int, total: int) -> None:
        on_progress(StepProgress(stage="reading the first articles", done=done, total=total))

    with extract_first_articles(
        convert_path(dump),
        settings,
        target.has_enough,
        engine=engine,
        workers=count_workers(workers),
        progress=report_reading,
    ) as articles:
        first = articles.first_day
        last = last_given or first.replace(year=first.year + _YEARS, day=min(first.day, 28))
        if last < first:
            raise SettingsError(f"until is {last}, expected a day from {first} on")
        return _search_days(target, articles, first, last, on_progress)


def _search_days(
    target: "_Target",
    articles: DatedArticles,
    first: datetime.date,
    last: datetime.date,
    on_progress: OnProgress,
) -> DateSearch:
    """Create the first text part from the articles of each day, and compare it with the published part."""
    found = DateSearch(
        file=target.row.label,
        figure="size" if target.row.md5 is None else "md5",
        bytes=len(target.make(articles.render_for_day(first))),
        published_bytes=target.row.bytes,
        first=first,
        last=last,
        titles=articles.titles(),
    )
    total = (last - first).days + 1 if articles.pages else 1
    for number in range(total):
        day = first + datetime.timedelta(days=number)
        on_progress(StepProgress(stage="trying days", done=number, total=total, unit="days"))
        if target.is_published(target.make(articles.render_for_day(day))):
            found.days.append(day)
    on_progress(StepProgress(stage="trying days", done=total, total=total, unit="days"))
    return found


def _check_dump(dump: str, rows: list[PublishedFile]) -> None:
    """Raise InputError if the dump has the name of a published dump and a different size."""
    name = storage.get_base_name(dump)
    for row in rows:
        if name in row.paths and storage.read_size(dump) != row.bytes:
            raise InputError(
                f"{dump}: {storage.read_size(dump)} bytes, expected {row.bytes} as the table publishes them"
            )


@dataclass(frozen=True)
class _Target:
    """The published file that is made again for each day.

    has_enough: function that gets the sizes of the extracted files so far, and returns True if these files
        suffice to make the published file.
    make: function that makes the file from the articles of a day.
    """

    row: PublishedFile
    has_enough: Callable[[list[int]], bool]
    make: Callable[[list[bytes]], bytes]

    def is_published(self, data: bytes) -> bool:
        """Return True if the data has the published size, and the published md5 if there is one."""
        return len(data) == self.row.bytes and self.row.md5 in (None, compute_md5(data))


def _find_target(rows: list[PublishedFile], table: str, load_splitter: LoadSplitter) -> _Target:
    """Return the published file to make again.

    It is the first extracted file, or the first text part if the table does not have the extracted file.
    """
    for row in _find_rows(rows, make_file_name(0)):
        return _Target(row, lambda sizes: len(sizes) >= 1, lambda articles: join_into_files(articles)[0])
    for row in _find_rows(rows, f"results/{make_mlperf_part_name(0)}"):
        return _Target(row, _has_whole_part, _PartMaker(_count_files(rows, table), load_splitter))
    raise SettingsError(
        f"table {table}: has no row for {make_file_name(0)} nor for results/{make_mlperf_part_name(0)}; "
        "one of them tells the day"
    )


def _find_rows(rows: list[PublishedFile], path: str) -> Iterator[PublishedFile]:
    """Yield the rows of the published table that belong to this file.

    path: the file's path, or the end of it.
    """
    for row in rows:
        if any(place == path or place.endswith(f"/{path}") for place in row.paths):
            yield row


def _count_files(rows: list[PublishedFile], table: str) -> int:
    """Return the number of extracted files in the table.

    The articles of the evaluation set are divided evenly among the files, so the text parts depend on this
    number.
    """
    names = [match for row in rows for path in row.paths if (match := _EXTRACTED.fullmatch(path))]
    if not names:
        raise SettingsError(
            f"table {table}: names no extracted file (text/FE/wiki_17), whose last one tells how many there "
            "are; each gives a share of the evaluation articles"
        )
    return 1 + max(
        100 * (26 * (ord(first) - ord("A")) + ord(second) - ord("A")) + int(number)
        for first, second, number in (match.groups() for match in names)
    )


def _has_whole_part(sizes: list[int]) -> bool:
    """Return True if extracted files of these sizes are enough to fill the first text part.

    The first part is known to be complete when a second part begins.
    """
    return bool(sizes) and max(plan_parts(sizes, SegmentSettings().block_size, ["the first file"])) > 0


class _PartMaker:
    """Maker of the first text part. The text of files that do not change between days is cached."""

    def __init__(self, files: int, load_splitter: LoadSplitter) -> None:
        self._files = files
        self._load_splitter = load_splitter
        self._text = lru_cache(maxsize=256)(self._make_text)

    def __call__(self, articles: list[bytes]) -> bytes:
        """Return the first text part, made from the articles of a day."""
        files = join_into_files(articles)
        numbers = plan_parts([len(file) for file in files], SegmentSettings().block_size, ["the first file"])
        first = [file for file, number in zip(files, numbers, strict=True) if number == 0]
        return b"".join(self._text(index, file) for index, file in enumerate(first))

    def _make_text(self, index: int, file: bytes) -> bytes:
        """Return the training sentences of one extracted file."""
        split = self._load_splitter().segment_lines
        eval_articles = SegmentSettings().eval_articles
        made = make_sentences(file, make_file_name(index), index, self._files, eval_articles, split)
        return trim_part_text(made.training)
