"""Pictures of a dataset's statistics, drawn by matplotlib. It is imported when one is asked for."""

from importlib import import_module
from io import BytesIO
from typing import Any

from bertdata.errors import MissingExtraError, UsageError, install_extra
from bertdata.io import storage
from bertdata.report.summary import Statistics

_PANEL_INCHES = (7.0, 3.6)
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "bertdata"},
    "png": {"Software": "bertdata"},
}


def check_picture(path: str) -> None:
    """UsageError if no picture can be made under that name. To be called before the work."""
    if path.rpartition(".")[2].lower() not in _METADATA:
        raise UsageError(f"{path}: expected a name that ends in .svg or .png")
    _load("matplotlib")


def write_picture(path: str, datasets: list[Statistics]) -> None:
    """The length histogram of each dataset, one below the other, as SVG or PNG.

    The same statistics give the same bytes with the same matplotlib: no date, no random identifiers,
    and no settings of the user's.
    """
    check_picture(path)
    kind = path.rpartition(".")[2].lower()
    matplotlib = _load("matplotlib")
    picture = BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "bertdata", "svg.fonttype": "none"})
        figure = _draw(datasets)
        figure.savefig(picture, format=kind, dpi=150, metadata=_METADATA[kind])
    with storage.open_output(path) as file:
        file.write(picture.getvalue())


def _draw(datasets: list[Statistics]) -> Any:
    """A figure of its own canvas: nothing of pyplot, which would choose a backend for the whole process."""
    width, height = _PANEL_INCHES
    figure = _load("matplotlib.figure").Figure(figsize=(width, height * len(datasets)), layout="constrained")
    panels = figure.subplots(len(datasets), squeeze=False)[:, 0]
    for panel, dataset in zip(panels, datasets, strict=True):
        _draw_lengths(panel, dataset)
    return figure


def _draw_lengths(panel: Any, dataset: Statistics) -> None:
    histogram = dataset.histogram()
    width, limit = histogram.bin_tokens, dataset.layout.max_seq_length
    starts = [index * width + 0.5 for index in range(len(histogram.examples))]
    bars = panel.bar(starts, histogram.examples, width=width, align="edge", color="#3b6ea5", linewidth=0)
    for index, bar in enumerate(bars):
        bar.set_gid(f"bar-{index}-examples-{histogram.examples[index]}")
    panel.set_title(f"{dataset.title}: {dataset.examples:,} examples, {dataset.padding:.1%} padding")
    panel.set_xlabel(f"length (tokens, {width} a bar; at most {limit})")
    panel.set_ylabel("examples")
    panel.set_xlim(0.5, starts[-1] + width)
    panel.set_ylim(bottom=0)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _load(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"--picture needs the package {error.name}: {install_extra('pictures')}"
        ) from error
