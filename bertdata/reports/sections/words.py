"""Section of the report about unknown words and the lengths of words."""

from collections import Counter
from collections.abc import Sequence

from bertdata.examples.counting import sum_weighted
from bertdata.reports.charts.bar_chart import BarChart
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sections.comparison import (
    Facts,
    describe_scopes,
    make_facts_table,
    place_side_by_side,
    to_percent,
)


def make_words_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section, or None if no dataset has numbers for it."""
    known = [numbers for numbers in datasets if _collect_facts(numbers)]
    if not known:
        return None
    blocks = (*place_side_by_side(known, _make_charts), make_facts_table("Words", known, _collect_facts))
    note = "The numbers of the inputs are exact, from the manifest. Others: "
    return ReportSection(
        "Unknown words and word lengths",
        blocks,
        note + describe_scopes(known, DatasetNumbers.describe_sample),
    )


def _collect_facts(numbers: DatasetNumbers) -> Facts:
    """Return a dataset's numbers for the section's table."""
    facts: dict[str, int | float | None] = {}
    statistics, counts = numbers.statistics, numbers.sample.tokens
    if statistics is not None and statistics.unknown_share is not None:
        facts["tokens of the inputs"] = statistics.input_tokens
        facts["[UNK] in the inputs (tokens)"] = statistics.unknown_tokens
        facts["[UNK] in the inputs (% of tokens)"] = to_percent(statistics.unknown_share)
    if numbers.vocabulary is not None and numbers.vocabulary.unk is not None and counts.ids:
        share = counts.ids[numbers.vocabulary.unk] / counts.ids.total()
        facts["[UNK] in the examples (% of tokens)"] = to_percent(share)
    if total := counts.words_by_tokens.total():
        facts["words of the examples"] = total
        facts["tokens per word, mean"] = round(sum_weighted(counts.words_by_tokens) / total, 4)
        facts["words of one token (%)"] = to_percent(counts.words_by_tokens[1] / total)
        facts["characters per word, mean"] = round(sum_weighted(counts.words_by_characters) / total, 4)
    return facts


def _make_charts(numbers: DatasetNumbers) -> Sequence[PageContent]:
    """Return the charts of word lengths. The result is empty if no words were counted."""
    counts = numbers.sample.tokens
    if not counts.words_by_tokens:
        return []
    return [
        ChartBlock(_make_chart("tokens", counts.words_by_tokens)),
        ChartBlock(_make_chart("characters", counts.words_by_characters)),
    ]


def _make_chart(unit: str, counter: Counter[int]) -> BarChart:
    """Return a chart of the number of words of each size. The last bar may stand for all longer words too."""
    most, total = max(counter), counter.total()
    sizes = range(1, most + 1)
    common = max(sizes, key=counter.__getitem__)
    return BarChart(
        title=f"Words by their {unit}",
        description=f"Most common is a length of {common}, in {counter[common] / total:.1%} of the words.",
        x_label=f"length of a word ({unit})",
        y_label="share of the words (%)",
        names=tuple(str(size) for size in sizes),
        heights={"words": tuple(to_percent(counter[size] / total) for size in sizes)},
        numeric=True,
        outlier=f"{100 * counter[common] / total:.0f} % have {common}",
    )
