"""Graphcore's remasked order, which stores an example's masked positions before all others.

A slot is an index in the record's lists. Masked positions fill slots from 0 on. The other positions fill
slots from P (max_predictions_per_seq) on. Both groups are in ascending order. A position with the id 0 gets
no slot. Pure-Python twin of the slots in _native/shards/example_encoder.h.
"""

from dataclasses import dataclass, replace
from typing import Any

from bertdata.examples.fields import (
    Field,
    Fields,
    FieldValues,
    LossyExample,
    check_example_values,
    check_ranges,
    get_single_value,
    make_field_values,
    map_columns_by_name,
    pad_values,
)
from bertdata.examples.groups import find_mask_columns, find_mask_names
from bertdata.records import ExampleBatch, ShardLayout


def has_slots(fields: Fields) -> bool:
    """Return True if the fields are those of records in this order."""
    return any(field.source == "slots" for field in fields.values())


def replace_pad_position(fields: Fields, position: int) -> Fields:
    """Return the fields with ``position`` stored in empty slots, instead of the declared position."""
    return {
        name: replace(field, padding=position) if field.source == "slot_positions" else field
        for name, field in fields.items()
    }


def find_pad_position(features: FieldValues, fields: Fields, batch_type: type[ExampleBatch]) -> int | None:
    """Return the position in a record's first empty slot, or None if every slot is used."""
    masks = find_mask_names(batch_type)
    by_source = {(field.source, field.of): features[name] for name, field in fields.items()}
    positions = by_source["slot_positions", "ids"]
    masked_end = get_single_value(by_source["masked_slots", masks.places], "masked_slots")
    used_end = get_single_value(by_source["used_slots", "ids"], "used_slots")
    empty = masked_end if masked_end < len(by_source["slots", masks.originals]) else used_end
    return positions[empty] if empty < len(positions) else None


@dataclass(frozen=True, slots=True)
class _Slots:
    """Assignment of positions to slots.

    masked: positions in the slots from 0 on. others: positions in the slots from ``room`` on.
    """

    masked: list[int]
    others: list[int]
    room: int

    def fill(self, value_at: dict[int, int], padding: int) -> list[int]:
        """Return the value of each slot. Slots between the masked and the other positions get the padding."""
        gap = [padding] * (self.room - len(self.masked))
        return [value_at[p] for p in self.masked] + gap + [value_at[p] for p in self.others]


def make_slotted_features(
    example: Any, fields: Fields, batch_type: type[ExampleBatch], layout: ShardLayout
) -> FieldValues:
    """Make the padded values of a record in Graphcore's order, by field. LossyExample if they do not fit."""
    columns = map_columns_by_name(batch_type)
    check_example_values(example, columns, layout)
    masks = find_mask_columns(batch_type)
    places, originals = getattr(example, masks.places.one), getattr(example, masks.originals.one)
    label_at = dict(zip(places, originals, strict=True))
    # ids [101, 7, 103, 9, 102] with position 2 masked and P = 3:
    # slots [2, -, -, 0, 1, 3, 4] by position, where - is an empty slot
    taken = [position for position, token in enumerate(example.ids) if token != 0]
    slots = _Slots(
        [position for position in taken if position in label_at],
        [position for position in taken if position not in label_at],
        layout.max_predictions_per_seq,
    )
    if slots.room + len(slots.others) > layout.max_seq_length:
        raise LossyExample("an example has more unmasked ids than max_seq_length - max_predictions_per_seq")

    def values(field: Field) -> list[int]:
        """Return the field's values before padding."""
        if field.source == "slots" and field.of == masks.originals.name:
            return [label_at[position] for position in slots.masked]
        if field.source == "slots":
            return slots.fill(dict(enumerate(example.ids)), 0)
        if field.source == "slot_positions":
            return slots.fill({position: position for position in taken}, int(field.padding))
        if field.source == "slot_after":
            first = getattr(example, columns[field.of].one)
            return slots.fill({position: int(position >= first) for position in taken}, 0)
        if field.source == "masked_slots":
            return [len(slots.masked)]
        assert field.source == "used_slots", field.source
        return [slots.room + len(slots.others)]

    # Fields that do not depend on the order are made as in the usual records.
    plain = {name: field for name, field in fields.items() if field.source in ("values", "ones")}
    made = make_field_values(example, plain, batch_type, layout)
    slotted = {name: field for name, field in fields.items() if name not in made}
    return made | {name: pad_values(values(field), field, layout) for name, field in slotted.items()}


def restore_slotted_example(features: FieldValues, fields: Fields, batch_type: type[ExampleBatch]) -> Any:
    """Restore an example from the values of its record in Graphcore's order.

    LossyExample or IndexError if there is no such example.
    """
    columns, masks = map_columns_by_name(batch_type), find_mask_names(batch_type)
    by_source = {(field.source, field.of): features[name] for name, field in fields.items()}
    masked_end = get_single_value(by_source["masked_slots", masks.places], "masked_slots")
    used_end = get_single_value(by_source["used_slots", "ids"], "used_slots")
    room, width = len(by_source["slots", masks.originals]), len(by_source["slots", "ids"])
    if not (0 <= masked_end <= room <= used_end <= width):
        raise LossyExample(
            f"slots up to {masked_end} and from {room} to {used_end} are used, expected them within {width}"
        )
    # The field of ones says how many masked positions there are. Their number can differ from masked_end,
    # because a masked position with the id 0 has no slot.
    count = sum(value == 1 for value in by_source["ones", masks.places])
    positions, labels = (list(by_source["values", name][:count]) for name in (masks.places, masks.originals))
    found: dict[str, Any] = {columns[masks.places].one: positions, columns[masks.originals].one: labels}
    slots = [*range(masked_end), *range(room, used_end)]
    places = [by_source["slot_positions", "ids"][slot] for slot in slots]
    outside = [place for place in (*places, *positions) if not 0 <= place < width]
    if outside:
        raise LossyExample(f"position {outside[0]}, expected 0 to {width - 1}")
    # Positions with the id 0 have no slot, so every position without a slot gets the id 0.
    length = max([*places, *positions]) + 1
    ids = [0] * length
    for slot, place in zip(slots, places, strict=True):
        ids[place] = by_source["slots", "ids"][slot]
    found["ids"] = ids
    for (source, of), values in by_source.items():
        if source == "slot_after":
            found[columns[of].one] = _find_first_one(values, slots, places, length)
        elif source == "values" and columns[of].ends is None:
            found[columns[of].one] = get_single_value(values, of)
    check_ranges(found, columns)
    return batch_type.example_type(**found)


def _find_first_one(values: list[int], slots: list[int], places: list[int], length: int) -> int:
    """Return the first position whose value is 1, restored from the values of the slots.

    Values are 0 up to some position and 1 from there on. A position with the id 0 has no slot, so its value
    is not stored. It is assumed to be the value of the positions before it.
    """
    after = [0] * length
    for slot, place in zip(slots, places, strict=True):
        after[place] = values[slot]
    return after.index(1) if after != sorted(after) else length - sum(after)
