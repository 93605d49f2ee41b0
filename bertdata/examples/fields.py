"""Converts an example's columns to the fields of a file format's record, and back.

A column is one value or list of an example, such as its ids. A field is one value or list of a record in a
file, such as ``input_mask``. ``schemas/example.json`` declares for each field its type, shape and padding,
the column that it is made from, and how it is made. Objectives defined outside this package declare their
fields in the same form. Pure-Python twin of _native/shards/example_encoder.h and example_decoder.h, which get
the same declarations as numbers.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bertdata._native import kernels
from bertdata.errors import SettingsError
from bertdata.examples.groups import MASKS, find_mask_columns, has_group
from bertdata.records import IDS, IDS_ENDS, Column, ExampleBatch, ShardLayout

VALUE_LIMIT = 1 << 21
"""All values in a TFRecord must be below this number, which is the largest allowed size of a vocabulary.

The C++ kernels call it kValueLimit.
"""

SOURCES = (
    "values",
    "ones",
    "after",
    "slots",
    "slot_positions",
    "slot_after",
    "masked_slots",
    "used_slots",
    "rest",
    "placed",
)
"""Ways to make a field's values from a column. Their order is that of the numbers in
_native/shards/record_format.h.

values: the column's items.
ones: a 1 for each item of the column.
after: 0 for each id before the column's position, and 1 for all other ids.
rest: the number of ids from the column's position on. Only Parquet uses it.
placed: each item of the column, stored at its position in a row. Only a model's inputs use it.
The ways whose names contain "slot" belong to Graphcore's order, in which masked positions come first.
The C++ kernels do not implement rest and placed.
"""

_HOLDING = ("values", "after", "slots", "slot_after")
"""The ways to make a field from whose result the column can be restored."""

_SIZES = {"S": IDS.size, "P": MASKS.size}
"""Short names for the size of a field: S is the number of ids and P the number of masked positions.

Sizes that an objective defines have no short name.
"""

FieldValues = dict[str, Any]
"""The values of a record by field name: lists of integers, or arrays of 32-bit floats."""


class LossyExample(ValueError):
    """Raised if a conversion between an example and a record would lose something.

    Either the record holds something that an example cannot store, or the example holds something that a
    record cannot store.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of a record in a file format.

    name: the field's name in the file.
    type: the type of a value, such as int64.
    shape: the number of values, as "1", "*" for any number, or the name of a size.
    of: name of the column that the field is made from.
    source: how the field is made from the column, one of SOURCES.
    padding: the value that fills unused places.
    ends_at_padding: True if the first padding value ends the row.
    """

    name: str
    type: str
    shape: str
    of: str
    source: str = "values"
    padding: int | float = 0
    ends_at_padding: bool = False

    @property
    def size(self) -> str | None:
        """Name of the setting that determines how many values the field has, such as max_seq_length.

        It is None if the field has one value, or any number of values.
        """
        return None if self.shape in ("1", "*") else _SIZES.get(self.shape, self.shape)

    def width(self, layout: ShardLayout, count: int) -> int:
        """Return how many values the field has in a record, padding included.

        count: number of items of the field's column in the example. It matters only if the shape is ``*``.
        """
        if self.size is None:
            return 1 if self.shape == "1" else count
        return layout.size(self.size)


Fields = Mapping[str, Field]
"""The fields of a record by name."""


def read_fields(declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Field]:
    """Convert field declarations, in the form of ``schemas/example.json``, to fields by name."""
    found = {}
    for name, field in declared.items():
        rest = {key: value for key, value in field.items() if key != "as"}
        found[name] = Field(name=name, source=field.get("as", "values"), **rest)
    return found


def replace_padding(fields: Fields, padding_id: int) -> Fields:
    """Return the fields with ``padding_id`` as the padding of token ids, instead of 0."""
    if not padding_id:
        return fields
    return {
        name: replace(field, padding=padding_id)
        if field.of == "ids" and field.source == "values" and field.size is not None
        else field
        for name, field in fields.items()
    }


def check_fields(fields: Fields, batch_type: type[ExampleBatch]) -> None:
    """Raise SettingsError if a field names a column, a source or a size that does not exist.

    The fields were declared by an objective, so the author of the objective made the mistake.
    """
    names = {column.name for column in batch_type.columns()}
    for field in fields.values():
        if field.of not in names or field.source not in SOURCES:
            raise SettingsError(
                f"field {field.name}: is made of {field.of!r} as {field.source!r}, expected one of "
                f"{', '.join(sorted(names))} as one of {', '.join(SOURCES)}"
            )
        if field.size not in (None, *batch_type.sizes()):
            raise SettingsError(
                f"field {field.name}: its shape is {field.shape!r}, expected S, 1, * or a size of the "
                f"examples: {', '.join(batch_type.sizes())}"
            )
        if field.source == "placed" and find_places_column(field.of, batch_type) is None:
            raise SettingsError(f"field {field.name}: is made of {field.of!r}, whose items have no places")


def check_fields_readable(form: str, fields: Fields, batch_type: type[ExampleBatch]) -> None:
    """Raise SettingsError unless an example can be restored from a record with these fields.

    The fields were declared by an objective, so the author of the objective made the mistake.

    form: the file format, for example "tfrecord".
    """
    columns = map_columns_by_name(batch_type)
    # The values of every column must be in a field from which they can be restored. End offsets are an
    # exception: they are restored from a field that shows how many items a column has, as checked below.
    held = {field.of for field in fields.values() if field.source in _HOLDING}
    for column in columns.values():
        if column.name not in held and column.name not in batch_type.ragged():
            raise SettingsError(f"fields of {form}: none holds the values of column {column.name}")
    if form not in ("tfrecord", "hdf5"):
        return  # The other formats store the lengths of their lists, or the number of used slots.
    ways = "a field of ones" if form == "tfrecord" else "a field of ones, or one that ends_at_padding"
    counted = {
        columns[field.of].ends
        for field in fields.values()
        if field.source == "ones" or (field.ends_at_padding and form == "hdf5")
    }
    for ends, items in batch_type.ragged().items():
        if ends not in counted:
            raise SettingsError(
                f"fields of {form}: none tells how many {items[0].name} there are; expected {ways}"
            )


def find_places_column(name: str, batch_type: type[ExampleBatch]) -> str | None:
    """Return the name of the column with the positions of this column's items.

    Returns None if the items have no positions.
    """
    ends = map_columns_by_name(batch_type)[name].ends
    beside = batch_type.ragged().get(ends, []) if ends is not None else []
    return next((column.name for column in beside if column.is_place), None)


def map_columns_by_name(batch_type: type[ExampleBatch]) -> dict[str, Column]:
    """Return the columns of a batch class by name."""
    return {column.name: column for column in batch_type.columns()}


def make_field_values(
    example: Any, fields: Fields, batch_type: type[ExampleBatch], layout: ShardLayout
) -> FieldValues:
    """Return the values of an example's record, by field and with padding.

    LossyExample if the example is too long or a value is out of range. The record has the usual order. For
    Graphcore's order there is ``slots.make_slotted_features``.
    """
    columns = map_columns_by_name(batch_type)
    check_example_values(example, columns, layout)
    values = {name: _make_values(example, field, columns[field.of]) for name, field in fields.items()}
    return {name: pad_values(values[name], field, layout) for name, field in fields.items()}


def check_example_values(example: Any, columns: Mapping[str, Column], layout: ShardLayout) -> None:
    """Raise LossyExample if an example has too many items for the layout, or a value that no record can
    hold.
    """
    ends = {column.ends for column in columns.values()}
    for column in columns.values():
        if column.name in ends:
            continue
        items = _get_items(example, column)
        group = IDS if column.ends == IDS_ENDS else column.group
        if column.ends is not None and len(items) > layout.size(group.size):
            raise LossyExample(f"{len(items)} {group.items}, expected at most {layout.size(group.size)}")
        if any(not 0 <= value < VALUE_LIMIT for value in items):
            raise LossyExample(f"an id or value is negative or above {VALUE_LIMIT - 1}")


def _get_items(example: Any, column: Column) -> list[int]:
    """Return the example's value of a column as a list. A single value becomes a list of one."""
    found = getattr(example, column.one)
    return found if column.ends is not None else [found]


def _make_values(example: Any, field: Field, column: Column) -> list[Any]:
    """Return the values of a field for an example, without padding."""
    items, ids = _get_items(example, column), len(example.ids)
    if field.source == "values":
        return items
    if field.source == "ones":
        return [1] * len(items)
    if field.source == "after":
        return [0] * items[0] + [1] * (ids - items[0])
    assert field.source == "rest", field.source
    return [ids - items[0]]


def pad_values(values: list[Any], field: Field, layout: ShardLayout) -> Any:
    """Fill a field's values up with padding. Values of type float32 become an array of 32-bit floats."""
    row = values + [field.padding] * (field.width(layout, len(values)) - len(values))
    return array("f", row) if field.type == "float32" else row


def restore_example(features: FieldValues, fields: Fields, batch_type: type[ExampleBatch]) -> Any:
    """Restore an example from its record. LossyExample if no example can have this record.

    Each column with several items needs a field of ones. The number of its ones says how many values of the
    other fields are not padding.

    features: padded values by field name.
    """
    columns = map_columns_by_name(batch_type)
    counts = {
        columns[field.of].ends: sum(value == 1 for value in features[name])
        for name, field in fields.items()
        if field.source == "ones"
    }
    found: dict[str, Any] = {}
    for name, field in fields.items():
        column = columns[field.of]
        if field.source == "values":
            values = features[name]
            found[column.one] = (
                get_single_value(values, name) if column.ends is None else list(values[: counts[column.ends]])
            )
        elif field.source == "after":
            found[column.one] = counts[columns["ids"].ends] - sum(features[name])
    check_ranges(found, columns)
    return batch_type.example_type(**found)


def get_single_value(values: Any, name: str) -> int:
    """Return the only value of a field. LossyExample if the field does not have exactly one value."""
    if len(values) != 1:
        raise LossyExample(f"{name} has {len(values)} values, expected 1")
    return int(values[0])


def check_ranges(found: Mapping[str, Any], columns: Mapping[str, Column]) -> None:
    """Raise LossyExample if an example's positions do not ascend or lie outside its ids, or if a value is too
    large.

    found: the example's values by attribute name.
    """
    for column in columns.values():
        if column.one not in found:
            continue
        if column.is_place and column.ends is not None:
            places = found[column.one]
            if any(later <= earlier for earlier, later in pairwise(places)):
                raise LossyExample(f"{column.name} do not ascend")
            if places and not 0 <= places[0] <= places[-1] < len(found["ids"]):
                raise LossyExample(f"{column.name} are outside the ids")
        elif column.ends is None and not 0 <= found[column.one] <= column.most:
            raise LossyExample(f"{column.name} is {found[column.one]}, expected 0 to {column.most}")


def make_record_format(fields: Fields, batch_type: type[ExampleBatch], layout: ShardLayout) -> Any:
    """Make the C++ object that encodes examples as TFRecords with these fields, and decodes them."""
    columns = batch_type.columns()
    numbers = {column.name: number for number, column in enumerate(columns)}
    masks = find_mask_columns(batch_type) if has_group(batch_type, MASKS) else None
    item_bytes = {"id": 4, "uint8": 1, "uint16": 2, "uint32": 4}
    return kernels.RecordFormat(
        columns=[
            (
                item_bytes[column.item],
                -1 if column.ends is None else numbers[column.ends],
                column.is_place,
                min(column.most, VALUE_LIMIT - 1),
            )
            for column in columns
        ],
        fields=[
            (
                field.name,
                field.type == "float32",
                SOURCES.index(field.source),
                numbers[field.of],
                field.width(layout, 0),
                int(field.padding),
            )
            # Records are written with their fields sorted by the bytes of their names.
            for _, field in sorted(fields.items(), key=lambda pair: pair[0].encode())
        ],
        positions=numbers[masks.places.name] if masks else -1,
        labels=numbers[masks.originals.name] if masks else -1,
        first_slot=layout.max_predictions_per_seq,
    )


def can_kernel_decode(fields: Fields, batch_type: type[ExampleBatch]) -> bool:
    """Return True if the C++ kernel can read records with these fields.

    The records must not be in Graphcore's order, which uses slots. Each column with several items must have a
    field of ones.
    """
    columns = map_columns_by_name(batch_type)
    counted = {columns[field.of].ends for field in fields.values() if field.source == "ones"}
    sources = {field.source for field in fields.values()}
    plain = sources <= {"values", "ones", "after"} and all(field.shape != "*" for field in fields.values())
    return plain and set(batch_type.ragged()) <= counted
