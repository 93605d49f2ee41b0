"""Examples as padded NumPy arrays, under the input names of Hugging Face's models.

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
"""Padded arrays of int64 by the name of the model's input. Their shape is [N, S] or [N], for N examples of
length S.
"""

_MOST_IDS = (1 << 32) - 1  # largest number of ids in a batch, because its end offsets are uint32


def make_model_rows(batch: ExampleBatch, layout: ShardLayout, *, labelled: bool = True) -> Rows:
    """Return the model's inputs and labels for a batch, as padded arrays that the objective declares.

    labelled: False leaves out the labels of masked tokens, for examples without masks.
    """
    objective = find_objective(layout.objective)
    fields = objective.model_fields
    if not labelled:
        of_masks = {column.name for column in objective.batch_type.columns() if column.group == MASKS}
        fields = {name: field for name, field in fields.items() if field.of not in of_masks}
    return pad_examples(batch, layout, replace_padding(fields, layout.padding_id))


def iterate_row_batches(data: OpenedDataset, size: int) -> Iterator[Rows]:
    """Yield all examples in order as padded arrays, with ``size`` examples in each batch."""
    labelled = not find_unmasked_directories(data)
    for batch in _iterate_batches(data, size):
        yield make_model_rows(batch, data.layout, labelled=labelled)


def iterate_column_batches(data: OpenedDataset, size: int) -> Iterator[dict[str, Array]]:
    """Yield all examples in order as the objective's columns without padding, with ``size`` examples in each
    batch.
    """
    for batch in _iterate_batches(data, size):
        yield {column.name: getattr(batch, column.name) for column in batch.columns()}


def _iterate_batches(data: OpenedDataset, size: int) -> Iterator[ExampleBatch]:
    return columns.regroup_batches(data.read_range(range(data.examples)), size)


def iterate_ordered_rows(
    data: OpenedDataset, *, batch_size: int, seed: int, epoch: int, rank: int, world: int, start: int
) -> Iterator[Rows]:
    """Yield the batches of an epoch that belong to one process of distributed training, in fairseq's order.

    All token ids are in memory.

    rank: index of the process.
    world: number of processes.
    start: index of the first batch to yield.

    Raises SettingsError for settings for which fairseq's order does not exist.
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
