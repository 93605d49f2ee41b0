"""Log lines about how often a run has trained on each source (dataset) of a mixture."""

from collections.abc import Callable

from bertdata.dataset.reader import OpenedDataset
from trainer.checkpoints.checkpoint import State
from trainer.data.mixture import MixedOrder
from trainer.data.order import Position


def log_epochs(
    data: OpenedDataset,
    state: State,
    log: Callable[[str], None],
    *,
    start: int,
    last: int,
    examples: int,
    examples_per_row: float,
) -> None:
    """Log how many epochs of each source (dataset of a mixture) the run has trained on.

    When a run starts, this also logs how many it will have been after the last update.
    start, last: numbers of the run's first and last update.
    examples: number of examples per update.
    examples_per_row: average number of examples in a row. If rows are packed while loading, the examples of a
    window (rows packed together) that is only partly used are estimated by this number.
    """
    order = MixedOrder(data.file_rows, sources=data.sources, seed=0, open_files=1)
    position = Position(*state.position)
    ahead = round(position.rows * examples_per_row)
    place = position.epoch * order.examples + position.examples + ahead
    names = [source.name for source in data.sources]
    now = dict(zip(names, order.epochs(place), strict=True))
    if state.step == start:
        is_packed = data.layout.packing is not None
        each = examples / (examples_per_row if is_packed else 1.0)
        end = order.epochs(place + round((last - state.step) * each))
        parts = sum(source.weight for source in data.sources)
        shares = [f"{source.name} {source.weight / parts:.2%}" for source in data.sources]
        log(f"mixture of {', '.join(shares)} of the {'packed rows' if is_packed else 'examples'}")
        log(f"by update {last}: {_format_epochs(dict(zip(names, end, strict=True)))}")
    if state.step:
        log(f"after update {state.step}: {_format_epochs(now)}")


def _format_epochs(epochs: dict[str, float]) -> str:
    """Return the epochs as text: "wiki 1.20 epochs, books 0.80 epochs"."""
    return ", ".join(f"{name} {number:.2f} epochs" for name, number in epochs.items())
