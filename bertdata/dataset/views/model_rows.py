"""Examples as padded NumPy rows, under the input names of Hugging Face's models.

This module imports NumPy.
"""

from collections.abc import Iterator

from bertdata.dataset.mask_presence import find_unmasked_directories
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.fairseq.batch_order import fairseq_batches
from bertdata.examples.fields import replace_padding
from bertdata.examples.groups import MASKS
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.rows import pad_examples

Rows = dict[str, Array]
"""Padded rows [N, S] or [N], int64, by the model's input name."""

_MOST_IDS = (1 << 32) - 1  # most ids in a batch, since its end offsets are uint32


def make_model_rows(batch: ExampleBatch, layout: ShardLayout, *, labelled: bool = True) -> Rows:
    """Return the batch's model inputs and labels as padded rows, as the objective declares them.

    labelled: False leaves out the labels of masked words, for examples without masks.
    """
    objective = find_objective(layout.objective)
    fields = objective.model_fields
    if not labelled:
        of_masks = {column.name for column in objective.batch_type.columns() if column.group == MASKS}
        fields = {name: field for name, field in fields.items() if field.of not in of_masks}
    return pad_examples(batch, layout, replace_padding(fields, layout.padding_id))


def iterate_row_batches(data: OpenedDataset, size: int) -> Iterator[Rows]:
    """Yield all examples in order as padded rows, ``size`` at a time."""
    labelled = not find_unmasked_directories(data)
    for batch in _iterate_batches(data, size):
        yield make_model_rows(batch, data.layout, labelled=labelled)


def iterate_column_batches(data: OpenedDataset, size: int) -> Iterator[dict[str, Array]]:
    """Yield all examples in order as the objective's columns without padding, ``size`` examples at a time."""
    for batch in _iterate_batches(data, size):
        yield {column.name: getattr(batch, column.name) for column in batch.columns()}


def _iterate_batches(data: OpenedDataset, size: int) -> Iterator[ExampleBatch]:
    return columns.regroup_batches(data.read_range(range(data.examples)), size)


def iterate_ordered_rows(
    data: OpenedDataset, *, batch_size: int, seed: int, epoch: int, rank: int, world: int, start: int
) -> Iterator[Rows]:
    """Yield the batches that this rank (process of distributed training) gets in an epoch, in fairseq's
    order, from batch ``start`` on.

    All ids are held in memory. Raises SettingsError for settings that fairseq's order does not allow.
    """
    if start < 0:
        raise SettingsError(f"start is {start}, expected a batch's number, 0 or more")
    pieces = list(data.read_range(range(data.examples)))
    if (total := sum(len(piece.ids) for piece in pieces)) > _MOST_IDS:
        raise SettingsError(
            f"{data.name}: holds {total} ids; batches in fairseq's order hold at most {_MOST_IDS}"
        )
    held = columns.join_batches(pieces)
    lengths = columns.compute_lengths(held.ends)
    batches = fairseq_batches(lengths, seed=seed, epoch=epoch, batch_size=batch_size, rank=rank, world=world)
    labelled = not find_unmasked_directories(data)
    for numbers in batches[start:]:
        yield make_model_rows(columns.take_examples(held, numbers), data.layout, labelled=labelled)
