"""What the stages count, by name, and the table of it."""

import re
from dataclasses import dataclass, field, fields
from typing import Any

from bertdata.text.settings import SegmentCounts
from bertdata.wiki.report import ExtractReport

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

DISTRIBUTIONS = {
    "part_bytes": "bytes of a part",
    "part_tokens": "token ids of a part",
    "part_milliseconds": "what a part took one worker, its shards made or found whole",
    "shard_examples": "examples of a shard",
    "shard_tokens": "real positions of a shard's examples",
    "shard_bytes": "bytes of a shard",
}
"""Of making shards; left-out parts are not in them."""

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


def spread(values: dict[str, list[int]]) -> None:
    """Add to the running stage's distributions."""
    from apache_beam.metrics import Metrics

    for name, found in values.items():
        distribution = Metrics.distribution(NAMESPACE, name)
        for value in found:
            distribution.update(value)


def report_amounts(report: ExtractReport) -> dict[str, int]:
    """An extraction's report as counters."""
    amounts = {name: getattr(report, name.removeprefix("dump_")) for name in DUMP_COUNTERS}
    skipped = {SKIPPED + _slug(reason): number for reason, number in report.skipped.items()}
    return amounts | skipped


def text_amounts(counts: SegmentCounts) -> dict[str, int]:
    """The text stage's counts as counters."""
    return {name: getattr(counts, name.removeprefix("text_")) for name in TEXT_COUNTERS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """How many values there were, and how they spread."""

    count: int
    sum: int
    min: int
    max: int

    def __add__(self, other: "Spread") -> "Spread":
        return Spread(
            count=self.count + other.count,
            sum=self.sum + other.sum,
            min=min(self.min, other.min),
            max=max(self.max, other.max),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Totals of the counters and spreads of the distributions, by name."""

    totals: dict[str, int] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)

    def __add__(self, other: "Figures") -> "Figures":
        """Those of both; they share no name."""
        return Figures(totals=self.totals | other.totals, spreads=self.spreads | other.spreads)


def counted(result: Any) -> Figures:
    """What a finished pipeline counted."""
    from apache_beam.metrics import MetricsFilter

    found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    totals: dict[str, int] = {}
    for counter in found["counters"]:
        name = counter.key.metric.name
        totals[name] = totals.get(name, 0) + counter.result
    spreads: dict[str, Spread] = {}
    for one in found["distributions"]:
        name, value = one.key.metric.name, one.result
        if value.count:
            here = Spread(count=value.count, sum=value.sum, min=value.min, max=value.max)
            spreads[name] = spreads[name] + here if name in spreads else here
    return Figures(totals=totals, spreads=spreads)


def table(figures: Figures, kind: str) -> str:
    """One line for each counter of a run from that kind of input, zero where nothing was counted.

    Below them one line for each distribution: least, mean and greatest value.
    """
    names = list(COUNTERS_OF_KIND[kind])
    if kind == "dump":
        place = names.index("dump_empty") + 1
        names[place:place] = sorted(name for name in figures.totals if name.startswith(SKIPPED))
    rows = {name: figures.totals.get(name, 0) for name in names}
    spreads = {name: found for name in DISTRIBUTIONS if (found := figures.spreads.get(name))}
    label = max(14, *(len(name) + 2 for name in [*rows, *spreads]))
    width = max(len(str(number)) for number in [*rows.values(), *(found.max for found in spreads.values())])
    lines = [f"  {name:<{label}}{total:>{width}}" for name, total in rows.items()]
    if spreads:
        wide = max(width, len("least"))
        lines.append(f"  {'':<{label}}{'least':>{wide}}  {'mean':>{wide}}  {'greatest':>{max(wide, 8)}}")
        lines += [
            f"  {name:<{label}}{found.min:>{wide}}  {round(found.sum / found.count):>{wide}}"
            f"  {found.max:>{max(wide, 8)}}"
            for name, found in spreads.items()
        ]
    return "\n".join(lines)


def _slug(reason: str) -> str:
    return re.sub(r"\W+", "_", reason.lower()).strip("_")
