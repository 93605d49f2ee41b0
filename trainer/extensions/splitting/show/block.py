"""A plan as a block of a page: the picture of its schedule, and its stages as a table."""

import re

from bertdata.report.charts.values import DataTable
from bertdata.report.page.blocks import DrawingBlock
from trainer.extensions.splitting.plan.plan import Plan, read_plan
from trainer.extensions.splitting.show.picture import draw_schedule
from trainer.extensions.splitting.show.table import devices_of, layers_of

_SIZE = re.compile(r" width='\d+' height='\d+' role='img'")


def draw_file(path: str, run: str) -> DrawingBlock:
    """The block of the plan in a file. SettingsError as from ``read_plan``."""
    plan = read_plan(path)
    title = f"Plan of {run}: {plan.strategy}"
    described = (
        f"One update of {plan.examples:,} sequences over {len(plan.stages)} stages and {plan.copies} copies: "
        f"{plan.seconds * 1e3:,.4g} ms by forecast, of which {plan.bubble:.1%} of the passes is idle."
    )
    svg = _SIZE.sub(" class='chart'", draw_schedule(plan), count=1)  # as wide as its place on the page
    return DrawingBlock(title, described, svg, _stages(plan, title))


def _stages(plan: Plan, title: str) -> DataTable:
    columns = ("stage", "layers", "devices", "forward (ms)", "backward (ms)", "memory (GiB)")
    rows = [
        (
            number,
            layers_of(stage),
            devices_of(plan, number),
            stage.forward * 1e3,
            stage.backward * 1e3,
            stage.memory.total / 2**30,
        )
        for number, stage in enumerate(plan.stages)
    ]
    return DataTable(title, columns, tuple(rows))
