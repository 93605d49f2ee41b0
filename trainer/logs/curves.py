"""A picture of the run's losses and accuracies, drawn into its output directory."""

from dataclasses import replace
from pathlib import Path

from bertdata.errors import MissingExtraError
from bertdata.io.terminal import say_error
from bertdata.reports.charts.drawing import write_picture
from trainer.logs.charts import make_result_charts
from trainer.logs.recorded_run import read_runs
from trainer.logs.reporter import Logger, Values


class Curves(Logger):
    """Logger that draws losses and accuracies from the run's tables, when all updates are made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def close(self, summary: Values, status: str, time: float) -> None:
        if status != "success":
            return  # draw nothing, because after SIGTERM or the loss of a worker only seconds are left
        try:
            if drawn := draw_curves(self._folder):
                say_error(f"wrote {' and '.join(map(str, drawn))}")
        except MissingExtraError as error:
            say_error(f"no picture of the curves: {error}")


def draw_curves(folder: Path) -> list[Path]:
    """Draw losses and accuracies of the run in this directory as curves.svg and curves.png.

    The titles name the directory. Returns the paths of the pictures, or an empty list if the tables have no
    numbers yet.
    """
    runs = read_runs([str(folder.resolve())])
    charts = [replace(chart, title=f"{runs[0].name}. {chart.title}") for chart in make_result_charts(runs)]
    paths = [folder / "curves.svg", folder / "curves.png"] if charts else []
    for path in paths:
        write_picture(str(path), charts, asked_by="it")
    return paths
