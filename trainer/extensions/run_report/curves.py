"""The picture of a run's curves, in its directory, and the guess that they are to be compared with."""

from dataclasses import replace
from pathlib import Path

from bertdata.io.terminal import say_error
from bertdata.report.charts.drawing import write_picture
from trainer.extensions.run_report.learned import guess_in_words, learned_charts
from trainer.extensions.run_report.recorded_run import read_run


def draw_curves(folder: Path) -> list[Path]:
    """Draw curves.svg and curves.png in a run's directory, which their titles name.

    Beside the rows of a run without evaluations, whose lines tell of a guess, a line tells of it here.
    Returns the paths, none where there is nothing to draw yet.
    """
    run = read_run(str(folder))
    if not run.columns("evaluations") and (guessed := guess_in_words(run)):
        say_error(f"beside it, a guess that reads nothing: {guessed}")
    name = folder.resolve().name
    charts = [replace(chart, title=f"{name}. {chart.title}") for chart in learned_charts([run], [name])]
    if not charts:
        return []
    paths = [folder / "curves.svg", folder / "curves.png"]
    for path in paths:
        write_picture(str(path), charts, asked_by="it")
    return paths
