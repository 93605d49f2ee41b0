"""A dataset's examples in fairseq's batches, as padded rows.

Needs NumPy when it is imported.
"""

from collections.abc import Iterator

from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.views.model_rows import Rows, model_rows
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.fairseq.order import fairseq_batches

_MOST_IDS = (1 << 32) - 1  # the largest end offset of a batch


def ordered_rows(
    data: OpenedDataset, *, batch_size: int, seed: int, epoch: int, rank: int, world: int, start: int
) -> Iterator[Rows]:
    """This rank's batches of an epoch, from number ``start`` on. All ids are held in memory.

    SettingsError for batches that fairseq does not have.
    """
    if start < 0:
        raise SettingsError(f"start is {start}, expected a batch's number, 0 or more")
    pieces = list(data.run(range(data.examples)))
    if (total := sum(len(piece.ids) for piece in pieces)) > _MOST_IDS:
        raise SettingsError(
            f"{data.name}: holds {total} ids; batches in fairseq's order hold at most {_MOST_IDS}"
        )
    held = columns.join(pieces)
    lengths = columns.lengths(held.ends)
    batches = fairseq_batches(lengths, seed=seed, epoch=epoch, batch_size=batch_size, rank=rank, world=world)
    for numbers in batches[start:]:
        yield model_rows(columns.take(held, numbers), data.layout)
