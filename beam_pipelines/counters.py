"""What the stages count, by name, and the table of it."""

import re
from dataclasses import fields
from typing import Any

from bertdata.text.report import ExtractReport
from bertdata.text.settings import SegmentCounts

NAMESPACE = "bertdata"
SKIPPED = "dump_skipped_"

DUMP_COUNTERS = {
    "dump_pages": "pages of the dump: written or skipped",
    "dump_written": "articles written",
    "dump_empty": "those of them that hold nothing but their title",
    "dump_template_pages": "template pages read",
    "dump_files": "files of articles",
    "dump_bytes": "bytes of these files",
}
"""Of extraction; with them goes one for each reason to skip a page, SKIPPED and the reason."""

TEXT_COUNTERS = tuple(f"text_{item.name}" for item in fields(SegmentCounts))
"""Of the text stage; what each means: SegmentCounts."""

SHARD_COUNTERS = {
    "parts": "input parts done",
    "parts_skipped": "input parts left out because they cannot be read",
    "documents": "documents in them",
    "sentences": "sentences in them",
    "tokens": "token ids in them",
    "examples": "examples in all shards, both phases of a recipe counted",
    "masked_tokens": "masked positions of these examples",
    "bytes": "bytes of all shards",
    "shards_kept": "shards that an earlier run or attempt had finished",
}
"""Of making shards."""

COUNTERS_OF_KIND = {
    "dump": (*DUMP_COUNTERS, *TEXT_COUNTERS, *SHARD_COUNTERS),
    "articles": (*TEXT_COUNTERS, *SHARD_COUNTERS),
    "parts": tuple(SHARD_COUNTERS),
}
"""What a run from each kind of input counts, in the order of its stages."""


def count(amounts: dict[str, int]) -> None:
    """Add to the running stage's counters."""
    from apache_beam.metrics import Metrics  # imported here: the names above are needed without Beam

    for name, amount in amounts.items():
        Metrics.counter(NAMESPACE, name).inc(amount)


def report_amounts(report: ExtractReport) -> dict[str, int]:
    """An extraction's report as counters."""
    amounts = {name: getattr(report, name.removeprefix("dump_")) for name in DUMP_COUNTERS}
    skipped = {SKIPPED + _slug(reason): number for reason, number in report.skipped.items()}
    return amounts | skipped


def text_amounts(counts: SegmentCounts) -> dict[str, int]:
    """The text stage's counts as counters."""
    return {name: getattr(counts, name.removeprefix("text_")) for name in TEXT_COUNTERS}


def counted(result: Any) -> dict[str, int]:
    """A finished pipeline's counters by name."""
    from apache_beam.metrics import MetricsFilter

    totals: dict[str, int] = {}
    for counter in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
        name = counter.key.metric.name
        totals[name] = totals.get(name, 0) + counter.result
    return totals


def table(totals: dict[str, int], kind: str) -> str:
    """One line for each counter of a run from that kind of input, zero where nothing was counted."""
    names = list(COUNTERS_OF_KIND[kind])
    if kind == "dump":
        place = names.index("dump_empty") + 1
        names[place:place] = sorted(name for name in totals if name.startswith(SKIPPED))
    rows = {name: totals.get(name, 0) for name in names}
    label = max(14, *(len(name) + 2 for name in rows))
    width = max(len(str(total)) for total in rows.values())
    return "\n".join(f"  {name:<{label}}{total:>{width}}" for name, total in rows.items())


def _slug(reason: str) -> str:
    return re.sub(r"\W+", "_", reason.lower()).strip("_")
