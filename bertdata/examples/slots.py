"""Graphcore's order of a record's positions: the masked positions are stored before all others.

A slot is an index in the record's lists. Masked positions fill the slots from 0 on. All other positions fill
the slots from P (max_predictions_per_seq) on. In both groups the positions ascend. A position with the id 0
gets no slot. Pure-Python twin of the slots in _native/shards/example_encoder.h.
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
    """Return True if these are the fields of records in Graphcore's order, which have slots."""
    return any(field.source == "slots" for field in fields.values())


def replace_pad_position(fields: Fields, position: int) -> Fields:
    """Return the fields with ``position`` as the number that empty slots hold in the list of positions."""
    return {
        name: replace(field, padding=position) if field.source == "slot_positions" else field
        for name, field in fields.items()
    }


def find_pad_position(features: FieldValues, fields: Fields, batch_type: type[ExampleBatch]) -> int | None:
    """Return the number that the first empty slot of a record holds as its position.

    Returns None if every slot is used.

    features: the record's values by field name.
    """
    masks = find_mask_names(batch_type)
    by_source = {(field.source, field.of): features[name] for name, field in fields.items()}
    positions = by_source["slot_positions", "ids"]
    masked_end = get_single_value(by_source["masked_slots", masks.places], "masked_slots")
    used_end = get_single_value(by_source["used_slots", "ids"], "used_slots")
    empty = masked_end if masked_end < len(by_source["slots", masks.originals]) else used_end
    return positions[empty] if empty < len(positions) else None


@dataclass(frozen=True, slots=True)
class _Slots:
    """Assignment of an example's positions to the slots in which they are stored.

    masked: positions in the slots from 0 on.
    others: positions in the slots from ``room`` on.
    room: number of slots reserved for masked positions.
    """

    masked: list[int]
    others: list[int]
    room: int

    def fill(self, value_at: dict[int, int], padding: int) -> list[int]:
        """Return the values in the order of the slots: first the masked positions, then all others.

        value_at: the value of each position.
        padding: the value of the empty slots between the masked and the other positions.
        """
        gap = [padding] * (self.room - len(self.masked))
        return [value_at[p] for p in self.masked] + gap + [value_at[p] for p in self.others]


def make_slotted_features(
    example: Any, fields: Fields, batch_type: type[ExampleBatch], layout: ShardLayout
) -> FieldValues:
    """Return the values of an example's record in Graphcore's order, by field name and with padding.

    LossyExample if the example does not fit into the record.
    """
    columns = map_columns_by_name(batch_type)
    check_example_values(example, columns, layout)
    masks = find_mask_columns(batch_type)
    places, originals = getattr(example, masks.places.one), getattr(example, masks.originals.one)
    label_at = dict(zip(places, originals, strict=True))
    # For example, let the ids be [101, 7, 103, 9, 102], position 2 masked and P = 3. The slots then hold the
    # positions [2, -, -, 0, 1, 3, 4], where - is an empty slot.
    taken = [position for position, token in enumerate(example.ids) if token != 0]
    slots = _Slots(
        [position for position in taken if position in label_at],
        [position for position in taken if position not in label_at],
        layout.max_predictions_per_seq,
    )
    if slots.room + len(slots.others) > layout.max_seq_length:
        raise LossyExample("an example has more unmasked ids than max_seq_length - max_predictions_per_seq")

    def values(field: Field) -> list[int]:
        """Return the values of a field, without padding at their end."""
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

    # Fields that do not depend on the order are made as in records of the usual order.
    plain = {name: field for name, field in fields.items() if field.source in ("values", "ones")}
    made = make_field_values(example, plain, batch_type, layout)
    slotted = {name: field for name, field in fields.items() if name not in made}
    return made | {name: pad_values(values(field), field, layout) for name, field in slotted.items()}


def restore_slotted_example(features: FieldValues, fields: Fields, batch_type: type[ExampleBatch]) -> Any:
    """Restore an example from its record in Graphcore's order.

    LossyExample or IndexError if no example can have this record.

    features: padded values by field name.
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
    # The number of masked positions is the number of ones in a field. It can be larger than masked_end,
    # because a masked position with the id 0 has no slot.
    count = sum(value == 1 for value in by_source["ones", masks.places])
    positions, labels = (list(by_source["values", name][:count]) for name in (masks.places, masks.originals))
    found: dict[str, Any] = {columns[masks.places].one: positions, columns[masks.originals].one: labels}
    slots = [*range(masked_end), *range(room, used_end)]
    places = [by_source["slot_positions", "ids"][slot] for slot in slots]
    outside = [place for place in (*places, *positions) if not 0 <= place < width]
    if outside:
        raise LossyExample(f"position {outside[0]}, expected 0 to {width - 1}")
    # Only positions with the id 0 have no slot, so the ids start as zeros.
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
    """Return the first position with the value 1.

    The value is 0 up to some position and 1 from there on. Each slot stores the value of its position. A
    position with the id 0 has no slot, and is assumed to have the same value as the positions before it.

    values: value of each slot.
    slots: the used slots.
    places: the position of each used slot.
    length: number of the example's ids.
    """
    after = [0] * length
    for slot, place in zip(slots, places, strict=True):
        after[place] = values[slot]
    return after.index(1) if after != sorted(after) else length - sum(after)
