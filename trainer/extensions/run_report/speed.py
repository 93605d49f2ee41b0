"""Charts of the optimiser and of speed over the updates."""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.report.charts.line_chart import Line, LineChart
from trainer.extensions.run_report.learned import UPDATES, run_lines
from trainer.extensions.run_report.recorded_run import RecordedRun


class RunMeasure(NamedTuple):
    """A column of training.csv: its title, its unit, the factor to that unit."""

    column: str
    title: str
    unit: str
    factor: float = 1.0


OPTIMISER = (
    RunMeasure("lr", "Learning rate", "learning rate"),
    RunMeasure("gradient_norm", "Gradient norm", "norm before clipping"),
)
SPEED = (
    RunMeasure("tokens_per_second", "Throughput", "tokens a second, without padding"),
    RunMeasure("samples_per_sec", "Sequences", "sequences a second"),
    RunMeasure("data_wait_share", "Waiting for data", "share of the time (%)", 100),
    RunMeasure("fill", "Fill", "tokens that are no padding (%)", 100),
    RunMeasure("iter_time", "Time of an update", "seconds"),
    RunMeasure("tflops", "Arithmetic", "10^12 operations a second and device"),
    RunMeasure("peak_share", "Share of the device's peak", "share of the peak (%)", 100),
    RunMeasure("memory_gib", "Memory", "GiB, most of a device"),
)
_FROM_ZERO = ("data_wait_share", "memory_gib")
"""Columns whose size matters more than their change."""


def charts_of(
    measures: Sequence[RunMeasure], runs: Sequence[RecordedRun], names: Sequence[str]
) -> list[LineChart]:
    """A chart of each of the measures that a run has numbers of."""
    charts = []
    for column, title, unit, factor in measures:
        lines = tuple(run_lines(runs, names, column, factor))
        if lines:
            charts.append(
                LineChart(
                    title=title,
                    description=f"{title}, {unit}. " + "; ".join(_spread(line) for line in lines) + ".",
                    x_label=UPDATES,
                    y_label=unit,
                    lines=lines,
                    whole_x=True,
                    y_range=(0, None) if column in _FROM_ZERO else (None, None),
                )
            )
    return charts


def _spread(line: Line) -> str:
    return f"{line.name} from {min(line.ys):.4g} to {max(line.ys):.4g}, at the end {line.ys[-1]:.4g}"
