"""Names of the stages' counters and distributions, and the table of them that is printed after a run."""

import re
from dataclasses import dataclass, field, fields
from typing import Any

from bertdata.sources.kinds import RECORD_KINDS
from bertdata.text.settings import SegmentCounts
from bertdata.wiki.articles.report import ExtractReport

NAMESPACE = "bertdata"
SKIPPED = "dump_skipped_"

DUMP_COUNTERS = {
    "dump_pages": "pages of the dump: written or skipped",
    "dump_written": "articles written",
    "dump_empty": "articles written that hold nothing but their title",
    "dump_template_pages": "template pages read",
    "dump_files": "files of articles",
    "dump_bytes": "bytes of these files",
}
"""Names and descriptions of the counters of a dump's extraction.

Each reason for which pages are skipped has a further counter, whose name is SKIPPED followed by the reason.
"""

TEXT_COUNTERS = tuple(f"text_{item.name}" for item in fields(SegmentCounts))
"""Names of the counters of the stages that make text parts. SegmentCounts describes them."""

SHARD_COUNTERS = {
    "parts": "input parts done",
    "parts_skipped": "input parts skipped because they cannot be read",
    "documents": "documents of these parts",
    "sentences": "sentences of these parts",
    "tokens": "token ids of these parts",
    "unknown_tokens": "those of these ids that are [UNK]",
    "examples": "examples of all shards, of both phases and of test shards where there are some",
    "masked_tokens": "masked positions of these examples",
    "lost_tokens": "token ids of the parts that no example holds, of each phase",
    "bytes": "bytes of all shards",
    "shards_kept": "shards kept from an earlier run or attempt",
}
"""Names and descriptions of the counters of the stages that make shards."""

PACK_COUNTERS = {
    "rows": "packed rows of all shards",
    "examples": "examples in these rows",
    "masked_tokens": "masked positions of these examples",
    "bytes": "bytes of all packed shards",
    "shards_kept": "shards kept from an earlier run or attempt",
}
"""Names and descriptions of the counters of the stages that pack a dataset."""

DISTRIBUTIONS = {
    "part_bytes": "bytes of a part",
    "part_tokens": "token ids of a part",
    "part_milliseconds": "time of one worker for a part, its shards made or kept",
    "shard_examples": "examples of a shard",
    "shard_tokens": "real positions of a shard's examples",
    "shard_bytes": "bytes of a shard",
}
"""Names and descriptions of the values of which minimum, mean and maximum are reported.

They are measured by the stages that make shards. Skipped parts are not included.
"""

COUNTERS_OF_KIND = {
    "dump": (*DUMP_COUNTERS, *TEXT_COUNTERS, *SHARD_COUNTERS),
    "articles": (*TEXT_COUNTERS, *SHARD_COUNTERS),
    **dict.fromkeys(("text", *RECORD_KINDS), (*TEXT_COUNTERS, *SHARD_COUNTERS)),
    "parts": tuple(SHARD_COUNTERS),
    "dataset": tuple(PACK_COUNTERS),
}
"""For each kind of input, the names of the counters that a run has, in the order in which they are printed.
"""


def add_to_counters(amounts: dict[str, int]) -> None:
    """Increase Beam's counters of the running stage.

    amounts: for the name of each counter, the number to add.
    """
    # Imported here, because the tables above are also used without Beam.
    from apache_beam.metrics import Metrics

    for name, amount in amounts.items():
        Metrics.counter(NAMESPACE, name).inc(amount)


def add_to_distributions(values: dict[str, list[int]]) -> None:
    """Add values to Beam's distributions of the running stage.

    values: for the name of each distribution, the values to add.
    """
    from apache_beam.metrics import Metrics

    for name, found in values.items():
        distribution = Metrics.distribution(NAMESPACE, name)
        for value in found:
            distribution.update(value)


def count_extraction(report: ExtractReport) -> dict[str, int]:
    """Return the numbers in an extraction's report under the names of the counters."""
    amounts = {name: getattr(report, name.removeprefix("dump_")) for name in DUMP_COUNTERS}
    skipped = {SKIPPED + _make_slug(reason): number for reason, number in report.skipped.items()}
    return amounts | skipped


def count_text(counts: SegmentCounts) -> dict[str, int]:
    """Return the counts of the stage that makes text parts, under the names of the counters."""
    return {name: getattr(counts, name.removeprefix("text_")) or 0 for name in TEXT_COUNTERS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """The number, sum, minimum and maximum of some values."""

    count: int
    sum: int
    min: int
    max: int

    def __add__(self, other: "Distribution") -> "Distribution":
        return Distribution(
            count=self.count + other.count,
            sum=self.sum + other.sum,
            min=min(self.min, other.min),
            max=max(self.max, other.max),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMetrics:
    """The counters and distributions of a finished pipeline.

    totals: value of each counter, by its name.
    distributions: values of each distribution, by its name.
    """

    totals: dict[str, int] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)

    def __add__(self, other: "RunMetrics") -> "RunMetrics":
        """Return the metrics of two pipelines together. The pipelines must not have a name in common."""
        return RunMetrics(
            totals=self.totals | other.totals, distributions=self.distributions | other.distributions
        )


def read_metrics(result: Any) -> RunMetrics:
    """Read the metrics of a finished pipeline from its result."""
    from apache_beam.metrics import MetricsFilter

    found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    totals: dict[str, int] = {}
    for counter in found["counters"]:
        name = counter.key.metric.name
        # Beam's ``result`` is the committed value of a counter, or the attempted value if the runner does not
        # report committed values. It is None if the runner leaves out zeros.
        totals[name] = totals.get(name, 0) + (counter.result or 0)
    distributions: dict[str, Distribution] = {}
    for one in found["distributions"]:
        name, value = one.key.metric.name, one.result
        if value is not None and value.count:
            found_here = Distribution(count=value.count, sum=value.sum, min=value.min, max=value.max)
            known = distributions.get(name)
            distributions[name] = known + found_here if known else found_here
    return RunMetrics(totals=totals, distributions=distributions)


def format_metrics(metrics: RunMetrics, kind: str) -> str:
    """Return the table of a run's metrics that is printed after the run.

    It has a line for each counter that a run with this input has, even if its value is zero. Then it has a
    line for each distribution, with minimum, mean and maximum.

    kind: the kind of the run's input, a key of COUNTERS_OF_KIND.
    """
    names = list(COUNTERS_OF_KIND[kind])
    if kind == "dump":
        place = names.index("dump_empty") + 1
        names[place:place] = sorted(name for name in metrics.totals if name.startswith(SKIPPED))
    rows = {name: metrics.totals.get(name, 0) for name in names}
    distributions = {name: found for name in DISTRIBUTIONS if (found := metrics.distributions.get(name))}
    label = max(14, *(len(name) + 2 for name in [*rows, *distributions]))
    greatest = [*rows.values(), *(found.max for found in distributions.values())]
    width = max(len(str(number)) for number in greatest)
    lines = [f"  {name:<{label}}{total:>{width}}" for name, total in rows.items()]
    if distributions:
        wide = max(width, len("least"))
        lines.append(f"  {'':<{label}}{'least':>{wide}}  {'mean':>{wide}}  {'greatest':>{max(wide, 8)}}")
        lines += [
            f"  {name:<{label}}{found.min:>{wide}}  {round(found.sum / found.count):>{wide}}"
            f"  {found.max:>{max(wide, 8)}}"
            for name, found in distributions.items()
        ]
    return "\n".join(lines)


def _make_slug(reason: str) -> str:
    """Return the text in lower case, with one underscore in place of all characters between two words."""
    return re.sub(r"\W+", "_", reason.lower()).strip("_")
