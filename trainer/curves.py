"""A picture of a run's loss and accuracy, drawn from its tables, so that it can be drawn again."""

import sys
from pathlib import Path
from typing import Any

from bertdata.errors import MissingExtraError, MissingInputError
from trainer.rows import Sink, Summary
from trainer.sinks import EVALUATION_COLUMNS, TRAINING_COLUMNS, read_table


class Curves(Sink):
    """Draws the picture when the run ends; where matplotlib is missing, one line says so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def close(self, summary: Summary) -> None:
        try:
            draw_curves(self._folder)
        except MissingExtraError as error:
            print(f"no picture of the curves: {error}", file=sys.stderr, flush=True)


def draw_curves(folder: Path) -> list[Path]:
    """curves.svg and curves.png of the directory's training.csv and evaluation.csv; their paths."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(f"matplotlib ({error}); pip install 'bertdata[pictures]'") from None
    training = _columns(folder / "training.csv", TRAINING_COLUMNS)
    evaluation = _columns(folder / "evaluation.csv", EVALUATION_COLUMNS)
    figure = Figure(figsize=(9, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    for axes, title, drawn in ((loss, "loss", "loss"), (accuracy, "accuracy", "acc")):
        for head, label in (("mlm", "masked words"), ("nsp", "next sentence")):
            axes.plot(training["step"], training[f"{head}_{drawn}"], label=label, linewidth=1)
        for head, label in (("masked_lm", "masked words"), ("next_sentence", "next sentence")):
            if evaluation["step"]:
                axes.plot(
                    evaluation["step"], evaluation[f"{head}_{title}"], "o--", label=f"{label}, evaluated"
                )
        _finish(axes, title)
    accuracy.set_ylim(0, 1)
    paths = [folder / "curves.svg", folder / "curves.png"]
    for path in paths:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, list[float]]:
    if not path.exists():
        raise MissingInputError(f"{path}: no such file; training and evaluation write it")
    rows = read_table(path, names)
    return {name: [float(row[name] or "nan") for row in rows] for name in names}


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("update")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
