"""Section of the report about the most and the least frequent tokens."""

from collections.abc import Sequence

from bertdata.reports.charts.line_chart import Line, LineChart
from bertdata.reports.charts.values import DataTable
from bertdata.reports.numbers import DatasetNumbers
from bertdata.reports.page.blocks import ChartBlock, PageContent
from bertdata.reports.page.page import ReportSection
from bertdata.reports.sampled_tokens import find_special_ids
from bertdata.reports.sections.comparison import (
    Facts,
    describe_scopes,
    make_facts_table,
    place_side_by_side,
    to_percent,
)
from bertdata.tokens.readable import make_words_readable

_MOST = 200


def make_tokens_section(datasets: Sequence[DatasetNumbers]) -> ReportSection:
    """Return the section, which lists the most and the least frequent tokens before masking."""
    blocks = (
        *place_side_by_side(datasets, _make_blocks),
        make_facts_table("Tokens of the vocabulary", datasets, _collect_facts),
    )
    scopes = describe_scopes(datasets, DatasetNumbers.describe_sample)
    is_masked = any(numbers.has_masks for numbers in datasets)
    return ReportSection(
        "Frequent and rare tokens",
        blocks,
        f"{scopes} Masked tokens are counted by their original ids." if is_masked else scopes,
    )


def read_token_texts(numbers: DatasetNumbers) -> list[str]:
    """Return the readable text of each token id. The result is empty if no vocabulary is known."""
    return make_words_readable(numbers.vocabulary) if numbers.vocabulary else []


def _collect_facts(numbers: DatasetNumbers) -> Facts:
    """Return a dataset's numbers for the section's table."""
    ids = numbers.sample.tokens.ids
    facts: dict[str, int | float | None] = {
        "distinct tokens that occur": len(ids),
        "tokens that occur once": sum(count == 1 for count in ids.values()),
    }
    if numbers.vocabulary is not None:
        absent = numbers.vocabulary.tokens - len(ids)
        facts["tokens of the vocabulary"] = numbers.vocabulary.tokens
        facts["tokens that do not occur"] = absent
        facts["tokens that do not occur (% of the vocabulary)"] = to_percent(
            absent / numbers.vocabulary.tokens
        )
    return facts


def _make_blocks(numbers: DatasetNumbers) -> Sequence[PageContent]:
    """Return the chart of the counts in descending order, and the two tables of tokens."""
    ids, texts = numbers.sample.tokens.ids, read_token_texts(numbers)
    special = find_special_ids(numbers.vocabulary) if numbers.vocabulary else set()
    ordered = sorted(ids, key=lambda token: (-ids[token], token))
    total = ids.total()

    def name_kind(token: int) -> str:
        """Return the kind of a token for the tables."""
        return "special" if token in special else "text"

    def make_rows(chosen: Sequence[int]) -> tuple[tuple[str | int | float, ...], ...]:
        return tuple(
            (
                _find_text(token, texts),
                str(token),
                ids[token],
                to_percent(ids[token] / total),
                name_kind(token),
            )
            for token in chosen
        )

    columns = ("token", "id", "count", "share (%)", "kind")
    counts = [ids[token] for token in ordered]
    chart = LineChart(
        title="Tokens by their rank",
        description=f"The most frequent of {len(counts):,} tokens is {counts[0] / total:.1%} of all.",
        x_label="rank",
        y_label="count",
        lines=(Line("count", range(1, len(counts) + 1), counts),),
        log_x=True,
        log_y=True,
    )
    return (
        ChartBlock(chart),
        DataTable("Most frequent tokens", columns, make_rows(ordered[:_MOST]), page_rows=10),
        DataTable("Rarest tokens that occur", columns, make_rows(ordered[: -_MOST - 1 : -1]), page_rows=10),
    )


def _find_text(token: int, texts: list[str]) -> str:
    """Return the text of a token. If the id has no text, return the id in angle brackets."""
    return texts[token] if token < len(texts) else f"<{token}>"
