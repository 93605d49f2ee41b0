"""Groups of columns that several objectives have, found in a batch of any type.

Another group is an objective's own: ``bertdata.records.ColumnGroup``. Who needs the masks of a batch asks for
them here, and need not know how its type calls them.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

from bertdata.errors import SettingsError
from bertdata.records import IDS, Buffer, Column, ColumnGroup, ExampleBatch

SEGMENT = ColumnGroup(name="segment")
"""One column: how many ids of an example, from its first on, are of the first segment."""
MASKS = ColumnGroup(name="masks", items="masked positions", size="max_predictions_per_seq")
"""Masked words: a column of places, ascending, and one of the original ids."""
PAIR_LABEL = ColumnGroup(name="pair label")
"""One column: a label of the example's two segments."""
WORD_STARTS = ColumnGroup(name="word starts")
"""One column: for each id 1 where a word starts, else 0."""
PAIRS = (IDS, SEGMENT, MASKS, PAIR_LABEL)
"""The groups that other programs' layouts of masked pairs of segments hold."""

Batch = TypeVar("Batch", bound=ExampleBatch)


class Masks(NamedTuple):
    """The masks of a batch, or the names of their columns: places, original ids, ends of each example's."""

    places: Any
    originals: Any
    ends: Any


def has_group(batch_type: type[ExampleBatch], group: ColumnGroup) -> bool:
    """True where batches of the type have columns of the group."""
    return group in batch_type.groups()


def only_column(batch_type: type[ExampleBatch], group: ColumnGroup) -> Column:
    """The column of a group that has one."""
    [found] = [item for item in batch_type.columns() if item.group == group]
    return found


def mask_columns(batch_type: type[ExampleBatch]) -> Masks:
    """The columns of the type's masks. SettingsError where they are not those of masks: a class's mistake."""
    return _mask_columns_of(batch_type)  # type: ignore[arg-type] # a class is hashable


@cache
def _mask_columns_of(kind: Any) -> Masks:
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


def mask_names(batch_type: type[ExampleBatch]) -> Masks:
    """The names of the columns of the type's masks."""
    return Masks(*(item.name for item in mask_columns(batch_type)))


def masks_of(batch: ExampleBatch) -> Masks:
    """The masks of a batch whose type has some."""
    return Masks(*(getattr(batch, name) for name in mask_names(type(batch))))


def with_masks(batch: Batch, ids: Buffer, masks: Masks) -> Batch:
    """The batch with other ids and masks."""
    return replace(batch, ids=ids, **dict(zip(mask_names(type(batch)), masks, strict=True)))


def count_masks(batch: ExampleBatch) -> int:
    """Masked positions of all examples. 0 where the type has no masks."""
    return len(masks_of(batch).places) if has_group(type(batch), MASKS) else 0


def segment_lengths(batch: ExampleBatch) -> Any:
    """The number of ids of each example's first segment."""
    return getattr(batch, only_column(type(batch), SEGMENT).name)


def pair_labels(batch: ExampleBatch) -> Any:
    """The label of each example's pair of segments."""
    return getattr(batch, only_column(type(batch), PAIR_LABEL).name)


def word_starts_of(batch: ExampleBatch) -> Any:
    """The word starts of a batch's ids. None where its type has none."""
    kind = type(batch)
    return getattr(batch, only_column(kind, WORD_STARTS).name) if has_group(kind, WORD_STARTS) else None


def pair_batch(
    batch_type: type[Batch],
    *,
    ids: Buffer,
    ends: Buffer,
    segment_lengths: Buffer,
    masks: Masks,
    pair_labels: Buffer,
) -> Batch:
    """A batch of a type with the groups of PAIRS."""
    columns = {
        only_column(batch_type, SEGMENT).name: segment_lengths,
        **dict(zip(mask_names(batch_type), masks, strict=True)),
        only_column(batch_type, PAIR_LABEL).name: pair_labels,
    }
    return batch_type(ids=ids, ends=ends, **columns)


def check_groups(
    holder: str,
    groups: Sequence[ColumnGroup],
    objective: str,
    batch_type: type[ExampleBatch],
    remedy: str = "",
) -> None:
    """SettingsError unless the objective's examples have the groups that the holder has, and no other."""
    if set(groups) != set(batch_type.groups()):
        raise SettingsError(
            f"{holder} holds examples of {_listed(groups)}; those of the objective {objective} have "
            f"{_listed(batch_type.groups())}{remedy}"
        )


def _listed(groups: Sequence[ColumnGroup]) -> str:
    *names, last = (group.name for group in groups)
    return f"{', '.join(names)} and {last}" if names else last
