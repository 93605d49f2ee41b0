"""The fields of packed rows, as ``schemas/packed.json`` declares them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from bertdata.errors import ShardError
from bertdata.records import ShardLayout
from schemas import load_schema


@dataclass(frozen=True, kw_only=True, slots=True)
class RowField:
    """A field of a packed row, as ``schemas/packed.json`` declares it.

    name: the field's name in the file.
    type: type of a value.
    shape: number of values per row, such as "S" (ids) or "K" (sequences). ``*`` if it varies.
    of: what the field stores, such as "ids" or "mask_places".
    """

    name: str
    type: str
    shape: str
    of: str

    def width(self, layout: ShardLayout) -> int | None:
        """Return how many values the field has in each row. Returns None if the number varies."""
        sequences, masks = layout.sequences_per_row, layout.max_predictions_per_seq
        sizes = {
            "S": layout.max_seq_length,
            "K": sequences,
            "P+K": masks + sequences,
            "P+K-1": masks + sequences - 1,
        }
        return sizes.get(self.shape)


RowFields = Mapping[str, RowField]
"""The fields of a packed row by name, for a layout of packed rows and a container."""


def check_row_fields(found: Iterable[str], fields: Collection[str], name: str) -> None:
    """Raise ShardError if a field is missing or unknown. ``name`` is the file or record, for the error."""
    for missing in sorted(set(fields) - set(found)):
        raise ShardError(f"{name}: no field {missing}, expected {', '.join(fields)}")
    for unknown in sorted(set(found) - set(fields)):
        raise ShardError(f"{name}: unknown field {unknown}, expected {', '.join(fields)}")


@cache
def load_row_fields(packing: str, form: str) -> RowFields:
    """Return the fields of a packed row in their order in the file.

    packing: name of the layout of packed rows.
    form: name of the container.
    """
    declared = load_schema("packed")[packing][form]
    return {name: RowField(name=name, **field) for name, field in declared.items()}
