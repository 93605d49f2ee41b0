"""The fields of packed rows, as ``schemas/packed.json`` declares them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from bertdata.errors import ShardError
from bertdata.records import ShardLayout
from schemas import load_schema


@dataclass(frozen=True, kw_only=True, slots=True)
class RowField:
    """A field of a packed row. ``schemas/packed.json`` describes the attributes."""

    name: str
    type: str
    shape: str
    of: str

    def width(self, layout: ShardLayout) -> int | None:
        """Return the number of values in each row, or None if it varies."""
        sequences, masks = layout.sequences_per_row, layout.max_predictions_per_seq
        sizes = {
            "S": layout.max_seq_length,
            "K": sequences,
            "P+K": masks + sequences,
            "P+K-1": masks + sequences - 1,
        }
        return sizes.get(self.shape)


RowFields = Mapping[str, RowField]
"""Fields of a layout in a container, by name."""


def check_row_fields(found: Iterable[str], fields: Collection[str], name: str) -> None:
    """Raise ShardError for a missing or unknown field. name: the file or record."""
    for missing in sorted(set(fields) - set(found)):
        raise ShardError(f"{name}: no field {missing}, expected {', '.join(fields)}")
    for unknown in sorted(set(found) - set(fields)):
        raise ShardError(f"{name}: unknown field {unknown}, expected {', '.join(fields)}")


@cache
def load_row_fields(packing: str, form: str) -> RowFields:
    """Return the fields of a layout's rows in a container, in declared order. form: the container's name."""
    declared = load_schema("packed")[packing][form]
    return {name: RowField(name=name, **field) for name, field in declared.items()}
