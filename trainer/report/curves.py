"""A picture of a run's loss and accuracy, drawn from training.csv and evaluation.csv."""

import csv
from pathlib import Path

from bertdata.io import storage
from trainer.errors import naming_extra
from trainer.model.task import Columns


def read_table(path: Path) -> list[dict[str, str]]:
    """The complete rows of the table; a row that a crash cut off is left out."""
    lines = storage.read_bytes(str(path)).decode().splitlines()
    return [row for row in csv.DictReader(lines) if None not in row.values()]


def draw_curves(folder: Path, columns: Columns) -> list[Path]:
    """Draw curves.svg and curves.png in the directory of the tables; returns their paths."""
    with naming_extra("matplotlib", "pictures"):
        from matplotlib.figure import Figure
    training = read_table(folder / "training.csv")
    evaluations = read_table(folder / "evaluation.csv")
    figure = Figure(figsize=(9, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    for axes, title, short in ((loss, "loss", "loss"), (accuracy, "accuracy", "acc")):
        for label, (head, name) in columns.curves.items():
            axes.plot(*_points(training, f"{head}_{short}"), label=label, linewidth=1)
            if evaluations and f"{name}_{title}" in evaluations[0]:
                axes.plot(*_points(evaluations, f"{name}_{title}"), "o--", label=f"{label}, evaluated")
        axes.set(title=title, xlabel="update")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    accuracy.set_ylim(0, 1)
    paths = [folder / "curves.svg", folder / "curves.png"]
    for path in paths:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _points(rows: list[dict[str, str]], name: str) -> tuple[list[float], list[float]]:
    return [float(row["step"]) for row in rows], [float(row[name]) for row in rows]
