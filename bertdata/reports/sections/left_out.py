"""Section of the report about what was left out on the way from the source to the examples, and why."""

from collections.abc import Iterator, Mapping, Sequence

from bertdata.errors import ManifestError, MissingInputError
from bertdata.io import storage
from bertdata.reports.charts.values import DataTable, Value
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import PageContent, Prose
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import (
    Facts,
    make_facts_table,
    place_side_by_side,
    to_percent,
)
from bertdata.reports.sections.provenance import describe_text_counts, read_parts_manifest
from bertdata.text.manifest import ARTICLES_COPY, RECORDS, TextManifest
from bertdata.text.settings import LEFT_OUT_COUNTS
from bertdata.wiki.articles.manifest import parse_articles_manifest

_REMOVED_LIST = "removed.jsonl"
_PAGE_ROWS = 10
_REASONS = {
    "malformed": "that are not readable (malformed)",
    "empty": "without text",
    "too_long": "that are too long",
    "other_language": "in another language",
    "excluded": "with text of an evaluation set",
    "duplicate": "that repeat an earlier record",
    "withheld": "held out for evaluation",
}
"""Words for the reasons in LEFT_OUT_COUNTS."""


def make_left_out_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section, or None if nothing is known about any of the datasets."""
    # The table has the reasons that apply to a record of any of the datasets.
    all_counts = [parts.counts for parts in _find_parts_manifests(datasets)]
    reasons = [name for name in LEFT_OUT_COUNTS if any(getattr(counts, name) for counts in all_counts)]
    facts = {numbers.name: _collect_facts(numbers, reasons) for numbers in datasets}
    details = {numbers.name: list(_make_details(numbers)) for numbers in datasets}
    blocks: list[PageContent] = []
    if any(facts.values()):
        blocks.append(
            make_facts_table("What was left out, and why", datasets, lambda numbers: facts[numbers.name])
        )
    if known := [numbers for numbers in datasets if details[numbers.name]]:
        blocks += place_side_by_side(known, lambda numbers: details[numbers.name])
    if not blocks:
        return None
    return ReportSection("Left out", tuple(blocks), "Exact, from the manifests.")


def _find_parts_manifests(datasets: Sequence[DatasetNumbers]) -> Iterator[TextManifest]:
    """Yield the manifests of the parts that the datasets were made from, where the datasets have copies."""
    for numbers in datasets:
        if (parts := read_parts_manifest(numbers.dataset)) is not None:
            yield parts


def _collect_facts(numbers: DatasetNumbers, reasons: Sequence[str]) -> Facts:
    """Return the numbers about a dataset, from the first step to the last.

    reasons: names in LEFT_OUT_COUNTS of the reasons to list.
    """
    facts: dict[str, Value] = {}
    if numbers.dataset.manifest is not None:
        facts |= _count_pages(numbers)
    if (parts := read_parts_manifest(numbers.dataset)) is not None:
        facts |= _count_records(parts, reasons)
    if numbers.dataset.manifest is not None:
        facts["input files left out"] = len(numbers.dataset.manifest.skipped)
    statistics = numbers.statistics
    if statistics is not None and statistics.lost_share is not None:
        facts["tokens of the input text"] = statistics.input_tokens
        facts["tokens that are in no example"] = statistics.lost_tokens
        facts["tokens that are in no example (%)"] = to_percent(statistics.lost_share)
    return facts


def _count_pages(numbers: DatasetNumbers) -> Iterator[tuple[str, Value]]:
    """Yield the numbers of pages of the dump, if the dataset has a copy of the articles' manifest."""
    path = storage.join(numbers.dataset.path, ARTICLES_COPY)
    try:
        report = parse_articles_manifest(storage.read_bytes(path), path).report
    except (MissingInputError, ManifestError):
        return
    yield "pages of the dump", report.pages
    for reason, pages in report.skipped.items():
        yield f"pages left out: {reason}", pages


def _count_records(parts: TextManifest, reasons: Sequence[str]) -> Mapping[str, Value]:
    """Return the numbers of records that were read, and of those left out, by reason.

    reasons: names in LEFT_OUT_COUNTS of the reasons to list.
    """
    counts = parts.counts
    left_out = {reason: getattr(counts, reason) for reason in reasons}
    if parts.settings.get("recipe") != RECORDS:
        # Articles without text and held-out articles are among the articles here.
        facts: dict[str, Value] = {"articles": counts.articles}
        facts |= {f"articles {_REASONS[name]}": found for name, found in left_out.items()}
        return facts
    # The documents of the manifest include those that are held out, but none that is left out otherwise.
    read = counts.articles + sum(found for name, found in left_out.items() if name != "withheld")
    facts = {"records read": read}
    facts |= {f"records {_REASONS[name]}": found for name, found in left_out.items()}
    total = sum(left_out.values())
    facts["records left out in all"] = total
    if read:
        facts["records left out in all (%)"] = to_percent(total / read)
    return facts


def _make_details(numbers: DatasetNumbers) -> Iterator[PageContent]:
    """Yield the warnings of a dataset, the input files that were left out, and counts of each source file."""
    manifest, parts = numbers.dataset.manifest, read_parts_manifest(numbers.dataset)
    warnings = () if manifest is None else manifest.warnings
    if told := [*warnings, *_describe_texts(numbers, parts)]:
        yield Prose(*told)
    if manifest is not None and manifest.skipped:
        rows = tuple((entry.name, entry.reason) for entry in manifest.skipped)
        yield DataTable("Input files left out", ("file", "reason"), rows, page_rows=_PAGE_ROWS, wide=True)
    if parts is not None and len(parts.inputs) > 1:
        yield from _make_files_table(parts)


def _describe_texts(numbers: DatasetNumbers, parts: TextManifest | None) -> Iterator[str]:
    """Yield sentences about held-out texts, and about the list of the records that were left out."""
    yield from describe_text_counts(numbers.dataset)
    if parts is not None and any(entry.name == _REMOVED_LIST for entry in parts.files):
        yield f"The file {_REMOVED_LIST} beside the parts lists each of these records with its reason."


def _make_files_table(parts: TextManifest) -> Iterator[DataTable]:
    """Yield a table of the records that were left out of each source file, if there are any."""
    reasons = [name for name in LEFT_OUT_COUNTS if any(getattr(entry, name) for entry in parts.inputs)]
    rows = tuple(
        (entry.name, *(getattr(entry, name) for name in reasons))
        for entry in parts.inputs
        if any(getattr(entry, name) for name in reasons)
    )
    if rows:
        columns = ("source file", *(f"records {_REASONS[name]}" for name in reasons))
        yield DataTable("Left out of each source file", columns, rows, page_rows=_PAGE_ROWS, wide=True)
