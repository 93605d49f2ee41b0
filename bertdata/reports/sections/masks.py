"""Section of the report about masked positions: what they contain, compared with what the settings lead to
expect.
"""

from collections.abc import Sequence
from typing import Any

from bertdata.examples.mask_report import KIND_NAMES
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


def make_masks_section(datasets: Sequence[DatasetNumbers]) -> ReportSection | None:
    """Return the section, or None if no dataset has examples with masks. It leaves out datasets without
    masks, and names them in its note.
    """
    masked = [numbers for numbers in datasets if numbers.has_masks]
    if not masked:
        return None
    blocks = (*place_side_by_side(masked, _make_blocks), make_facts_table("Masks", masked, _collect_facts))
    notes = [describe_scopes(masked, DatasetNumbers.describe_sample)]
    notes += [f"{numbers.name} has no masks." for numbers in datasets if not numbers.has_masks]
    return ReportSection("Masks", blocks, " ".join(notes))


def _find_mask_statistics(numbers: DatasetNumbers) -> dict[str, Any]:
    """Return the statistics about masks that the objective computed."""
    assert numbers.statistics is not None
    return numbers.statistics.findings.sections["masks"]


def _make_blocks(numbers: DatasetNumbers) -> Sequence[PageContent]:
    """Return the chart of a dataset."""
    section = _find_mask_statistics(numbers)
    kinds = section["kinds"]
    names = {kind: KIND_NAMES[kind] for kind in kinds}
    told = (
        f"{names[kind]}: {of['share']:.2%}, expected {of['expected_share']:.0%}" for kind, of in kinds.items()
    )
    chart = BarChart(
        title="Masked positions by what they hold now",
        description=f"{'; '.join(told)}. Dashes mark the shares expected from the settings.",
        x_label="what the position holds",
        y_label="share of the masked positions (%)",
        names=tuple(names.values()),
        heights={"share": tuple(to_percent(of["share"]) for of in kinds.values())},
        expected=tuple(to_percent(of["expected_share"]) for of in kinds.values()),
    )
    return [ChartBlock(chart, _describe_mask_id(section))]


def _describe_mask_id(section: dict[str, Any]) -> str:
    """Return a note if the id of [MASK] is unknown or was guessed from the examples.

    It is empty if the id comes from the vocabulary.
    """
    mask = section["mask_id"]
    if mask is None:
        return "The id of [MASK] is not known: --vocab tells [MASK] and random tokens apart."
    if mask["source"] == "data":
        return f"[MASK] is taken for id {mask['id']}, the id at most masked positions."
    return ""


def _collect_facts(numbers: DatasetNumbers) -> Facts:
    """Return a dataset's numbers for the section's table."""
    section = _find_mask_statistics(numbers)
    each = section["per_example"]
    facts: dict[str, int | float | None] = {
        "masked positions": section["masked_tokens"],
        "masked (% of the tokens)": to_percent(section["token_share"]),
        "masks per example, mean": each["mean"],
        "masks per example, least": each["min"],
        "masks per example, most": each["max"],
        "examples with all masks that fit (%)": to_percent(section["filled_share"]),
    }
    for kind, of in section["kinds"].items():
        facts[f"{KIND_NAMES[kind]} (masked positions)"] = of["count"]
        facts[f"{KIND_NAMES[kind]} (%)"] = to_percent(of["share"])
        facts[f"{KIND_NAMES[kind]}, expected (%)"] = to_percent(of["expected_share"])
    return facts
