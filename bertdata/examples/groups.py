"""Groups of columns that the batches of several objectives have, and functions that find them in a batch.

Objectives store the same thing under different names. Code that needs, for example, the masks of a batch gets
them with a function of this module and need not know the names. Objectives can define further groups
(``bertdata.records.ColumnGroup``).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

from bertdata.errors import SettingsError
from bertdata.records import IDS, Buffer, Column, ColumnGroup, ExampleBatch

SEGMENT = ColumnGroup(name="segment")
"""Group of one column: the number of ids in segment A of each example."""
MASKS = ColumnGroup(name="masks", items="masked positions", size="max_predictions_per_seq")
"""Group of three columns: masked positions in ascending order, their original ids, and their end offsets."""
PAIR_LABEL = ColumnGroup(name="pair label")
"""Group of one column: the label of each example's pair of segments."""
WORD_STARTS = ColumnGroup(name="word starts")
"""Group of one column: for each id, 1 if a word starts there, else 0."""
PAIRS = (IDS, SEGMENT, MASKS, PAIR_LABEL)
"""The groups of BERT's examples: pairs of segments with masks and a label.

The file layouts of other programs can hold exactly these groups.
"""

Batch = TypeVar("Batch", bound=ExampleBatch)


class Masks(NamedTuple):
    """The three parts of a batch's masks. They can be arrays, columns or names of columns.

    places: masked positions.
    originals: original id at each masked position.
    ends: end offsets, which say where the masks of each example end.
    """

    places: Any
    originals: Any
    ends: Any


def has_group(batch_type: type[ExampleBatch], group: ColumnGroup) -> bool:
    """Return True if the batch class has at least one column of the group."""
    return group in batch_type.groups()


def find_column(batch_type: type[ExampleBatch], group: ColumnGroup) -> Column:
    """Return the column of a group that has exactly one column."""
    [found] = [item for item in batch_type.columns() if item.group == group]
    return found


def find_mask_columns(batch_type: type[ExampleBatch]) -> Masks:
    """Return the three columns in which a batch class stores masks.

    Raises SettingsError if the class does not have exactly these three: positions, original ids and end
    offsets. The author of the class then made a mistake.
    """
    return _find_mask_columns(batch_type)  # type: ignore[arg-type] # a class is hashable


@cache
def _find_mask_columns(kind: Any) -> Masks:
    """Find the three columns of masks in a batch class. The result is cached for each class."""
    of_masks = [item for item in kind.columns() if item.group == MASKS]
    places = [item for item in of_masks if item.is_place]
    originals = [item for item in of_masks if item.item == "id"]
    ends = [item for item in of_masks if item.name in kind.ragged()]
    if not len(places) == len(originals) == len(ends) == 1 or len(of_masks) != 3:
        names = ", ".join(item.name for item in of_masks)
        raise SettingsError(
            f"{kind.__name__}: its masks have the columns {names}; expected places, ids and their ends"
        )
    return Masks(places[0], originals[0], ends[0])


def find_mask_names(batch_type: type[ExampleBatch]) -> Masks:
    """Return the names of the three columns in which a batch class stores masks."""
    return Masks(*(item.name for item in find_mask_columns(batch_type)))


def get_masks(batch: ExampleBatch) -> Masks:
    """Return the masked positions, original ids and end offsets of a batch whose class has masks."""
    return Masks(*(getattr(batch, name) for name in find_mask_names(type(batch))))


def replace_masks(batch: Batch, ids: Buffer, masks: Masks) -> Batch:
    """Return a copy of the batch with these ids and masks instead of its own."""
    return replace(batch, ids=ids, **dict(zip(find_mask_names(type(batch)), masks, strict=True)))


def count_masks(batch: ExampleBatch) -> int:
    """Return the number of masked positions in all examples of the batch. 0 if its class has no masks."""
    return len(get_masks(batch).places) if has_group(type(batch), MASKS) else 0


def get_segment_lengths(batch: ExampleBatch) -> Any:
    """Return the number of ids in segment A of each example."""
    return getattr(batch, find_column(type(batch), SEGMENT).name)


def get_pair_labels(batch: ExampleBatch) -> Any:
    """Return the label of each example's pair of segments."""
    return getattr(batch, find_column(type(batch), PAIR_LABEL).name)


def get_word_starts(batch: ExampleBatch) -> Any:
    """Return where words start: 1 or 0 for each id of the batch.

    Returns None if the batch does not store this.
    """
    kind = type(batch)
    return getattr(batch, find_column(kind, WORD_STARTS).name) if has_group(kind, WORD_STARTS) else None


def make_pair_batch(
    batch_type: type[Batch],
    *,
    ids: Buffer,
    ends: Buffer,
    segment_lengths: Buffer,
    masks: Masks,
    pair_labels: Buffer,
) -> Batch:
    """Make a batch of examples that are pairs of segments with masks and a label, like BERT's.

    batch_type: class of the batch. It must have all column groups that PAIRS lists.
    ids: ids of all examples.
    ends: for each example, the index after its last id.
    segment_lengths: number of ids in segment A of each example.
    masks: masks of all examples.
    pair_labels: label of each example's pair of segments.
    """
    columns = {
        find_column(batch_type, SEGMENT).name: segment_lengths,
        **dict(zip(find_mask_names(batch_type), masks, strict=True)),
        find_column(batch_type, PAIR_LABEL).name: pair_labels,
    }
    return batch_type(ids=ids, ends=ends, **columns)


def check_groups(
    holder: str,
    groups: Sequence[ColumnGroup],
    objective: str,
    batch_type: type[ExampleBatch],
    remedy: str = "",
) -> None:
    """Raise SettingsError unless the objective's examples consist of exactly these column groups.

    holder: the file format or task that needs the groups, for the message.
    remedy: text to append to the message.
    """
    if set(groups) != set(batch_type.groups()):
        raise SettingsError(
            f"{holder} holds examples of {_list_names(groups)}; those of the objective {objective} have "
            f"{_list_names(batch_type.groups())}{remedy}"
        )


def _list_names(groups: Sequence[ColumnGroup]) -> str:
    """Return the groups' names as "a, b and c"."""
    *names, last = (group.name for group in groups)
    return f"{', '.join(names)} and {last}" if names else last
