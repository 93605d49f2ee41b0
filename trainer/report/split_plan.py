"""A plan (how a model is divided over devices) as content of a report page: its schedule and its stages."""

import re

from bertdata.reports.charts.values import DataTable
from bertdata.reports.page.blocks import DrawingBlock
from trainer.splitting.plan.plan import Plan, read_plan
from trainer.splitting.show.picture import draw_schedule
from trainer.splitting.show.table import format_devices, format_layers

_SIZE = re.compile(r" width='\d+' height='\d+' role='img'")
_PAPER = re.compile(r"(<rect width='\d+' height='\d+' fill=)'white'/>")
_PAGE_COLOURS = {
    "#000": "ink",
    "#333": "ink",
    "#555": "faint",
    "#888": "faint",
    "#999": "faint",
    "#ececec": "grid",
}
"""For each colour in the picture of a plan, the colour of the page's theme that replaces it. The colours of
forward and backward passes are not replaced.
"""


def draw_plan_file(path: str, run: str) -> DrawingBlock:
    """Return the page's content about a plan: a picture of its schedule, and a table of its stages.

    path: file of the plan.
    run: name of the run.
    Raises SettingsError if the file cannot be read as a plan.
    """
    plan = read_plan(path)
    title = f"Plan of {run}: {plan.strategy}"
    described = (
        f"One update of {plan.examples:,} sequences, stages {len(plan.stages)}, copies {plan.copies}: "
        f"{plan.seconds * 1e3:,.4g} ms by forecast; {plan.bubble:.1%} of the time of the passes is idle."
    )
    return DrawingBlock(
        title, described, _fit_into_page(draw_schedule(plan)), _make_stages_table(plan, title)
    )


def _fit_into_page(svg: str) -> str:
    """Return the SVG picture with the width of the page and with colours that suit its light and dark
    theme.
    """
    svg = _SIZE.sub(" class='chart wide'", svg, count=1)
    svg = _PAPER.sub(r"\1'var(--paper)'/>", svg, count=1)
    for colour, name in _PAGE_COLOURS.items():
        svg = re.sub(rf"='{colour}'", f"='var(--{name})'", svg)
    return svg


def _make_stages_table(plan: Plan, title: str) -> DataTable:
    """Return a table of the plan's stages (consecutive layers on the same devices)."""
    columns = ("stage", "layers", "devices", "forward (ms)", "backward (ms)", "memory (GiB)")
    rows = [
        (
            number,
            format_layers(stage),
            format_devices(plan, number),
            stage.forward * 1e3,
            stage.backward * 1e3,
            stage.memory.total / 2**30,
        )
        for number, stage in enumerate(plan.stages)
    ]
    return DataTable(title, columns, tuple(rows))
