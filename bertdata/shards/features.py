"""An example as TFRecord features, and back; twin of the encoder and decoder in _native/.

Which fields there are, their shapes and paddings, is declared in ``schemas/example.json``.
"""

from array import array
from functools import cache
from itertools import pairwise
from typing import Any

from bertdata.config.recipes import LONGEST_SEQUENCE
from bertdata.records import Example, ShardLayout
from bertdata.shards.example_proto import Features
from schemas import load_schema

ID_LIMIT = 1 << 21
"""Ids are below this, as many as a vocabulary may have; twin of kIdLimit."""


class LossyExample(ValueError):
    """The features hold something that an Example cannot, or the other way round."""


@cache
def _fields(remask: bool) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = load_schema("example")["tfrecord_remasked" if remask else "tfrecord"]
    return fields


def features_of(example: Example, layout: ShardLayout) -> Features:
    """The padded features of one example, in the layout's order; LossyExample if they cannot be."""
    if any(not 0 <= token < ID_LIMIT for token in (*example.ids, *example.labels)):
        raise LossyExample(f"an id is negative or above {ID_LIMIT - 1}")
    values = _remasked_values(example, layout) if layout.remask else _plain_values(example)
    return {name: _padded(values[name], field, layout) for name, field in _fields(layout.remask).items()}


def _plain_values(example: Example) -> dict[str, list[Any]]:
    length = len(example.ids)
    return {
        "input_ids": example.ids,
        "input_mask": [1] * length,
        "segment_ids": [0] * example.first_length + [1] * (length - example.first_length),
        **_mask_values(example),
    }


def _mask_values(example: Example) -> dict[str, list[Any]]:
    return {
        "masked_lm_positions": example.positions,
        "masked_lm_ids": example.labels,
        "masked_lm_weights": [1.0] * len(example.positions),
        "next_sentence_labels": [example.next_label],
    }


def _remasked_values(example: Example, layout: ShardLayout) -> dict[str, list[Any]]:
    """Graphcore's order: masked positions fill slots from 0, all others from P on; ids 0 fill none."""
    label_at = dict(zip(example.positions, example.labels, strict=True))
    taken = [position for position, token in enumerate(example.ids) if token != 0]
    masked = [position for position in taken if position in label_at]
    others = [position for position in taken if position not in label_at]
    room = layout.max_predictions_per_seq
    if room + len(others) > layout.max_seq_length:
        raise LossyExample("an example has more unmasked ids than max_seq_length - max_predictions_per_seq")

    def slots(value_at: dict[int, int], padding: int) -> list[int]:
        gap = [padding] * (room - len(masked))
        return [value_at[p] for p in masked] + gap + [value_at[p] for p in others]

    ids = dict(enumerate(example.ids))
    return {
        "input_ids": slots(ids, 0),
        "input_position": slots({p: p for p in taken}, _fields(True)["input_position"]["padding"]),
        "segment_ids": slots({p: int(p >= example.first_length) for p in taken}, 0),
        "mask_padding_index": [len(masked)],
        "seq_padding_index": [room + len(others)],
        "masked_labels": [label_at[p] for p in masked],
        **_mask_values(example),
    }


def _padded(values: list[Any], field: dict[str, Any], layout: ShardLayout) -> Any:
    width = {"S": layout.max_seq_length, "P": layout.max_predictions_per_seq, "1": 1, "*": len(values)}
    padded = values + [field.get("padding")] * (width[field["shape"]] - len(values))
    return array("f", padded) if field["type"] == "float32" else padded


def layout_of(features: Features) -> ShardLayout:
    """The layout that a record's features have; LossyExample if they are not a BERT example's."""
    remask = "masked_labels" in features
    missing = sorted(set(_fields(remask)) - set(features))
    if missing:
        raise LossyExample(f"lacks {', '.join(missing)}")
    length = len(features["input_ids"] or ())
    if not 1 <= length <= LONGEST_SEQUENCE:
        raise LossyExample(f"input_ids has {length} values, expected 1 to {LONGEST_SEQUENCE}")
    return ShardLayout(
        max_seq_length=length,
        max_predictions_per_seq=len(features["masked_lm_weights"] or ()),
        remask=remask,
    )


def example_of(features: Features, layout: ShardLayout) -> Example:
    """The example whose features these are; LossyExample where they are no such example's."""
    read = _from_remasked if layout.remask else _from_plain
    try:
        example = read(features)
        unchanged = features_of(example, layout) == features
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise LossyExample(f"not the features of a BERT example: {error}") from None
    if not unchanged:
        again = features_of(example, layout)
        wrong = [name for name in again if again[name] != features.get(name)] or sorted(
            set(features) - set(again)
        )
        raise LossyExample(f"cannot be held without loss: {', '.join(wrong)}")
    return example


def _masks(features: Any) -> tuple[list[int], list[int]]:
    count = sum(weight == 1 for weight in features["masked_lm_weights"])
    return list(features["masked_lm_positions"][:count]), list(features["masked_lm_ids"][:count])


def _from_plain(features: Any) -> Example:
    length = sum(features["input_mask"])
    positions, labels = _masks(features)
    if any(later <= earlier for earlier, later in pairwise(positions)):
        raise LossyExample("masked_lm_positions do not ascend")
    if positions and not 0 <= positions[0] <= positions[-1] < length:
        raise LossyExample("masked_lm_positions are outside the text")
    return Example(
        ids=list(features["input_ids"][:length]),
        first_length=length - sum(features["segment_ids"]),
        positions=positions,
        labels=labels,
        next_label=_next_label(features),
    )


def _from_remasked(features: Any) -> Example:
    masked_end, other_end = features["mask_padding_index"][0], features["seq_padding_index"][0]
    room = len(features["masked_labels"])
    positions, labels = _masks(features)
    slots = [*range(masked_end), *range(room, other_end)]
    places = [features["input_position"][slot] for slot in slots]
    length = max([*places, *positions]) + 1
    ids = [0] * length
    segments = [0] * length
    for slot, place in zip(slots, places, strict=True):
        ids[place] = features["input_ids"][slot]
        segments[place] = features["segment_ids"][slot]
    first_length = length - sum(segments)
    if segments != sorted(segments):  # an id 0 has no slot: its segment is its neighbour's
        first_length = segments.index(1)
    return Example(
        ids=ids,
        first_length=first_length,
        positions=positions,
        labels=labels,
        next_label=_next_label(features),
    )


def _next_label(features: Any) -> int:
    (label,) = features["next_sentence_labels"]
    if label not in (0, 1):
        raise LossyExample(f"next_sentence_labels is {label}, expected 0 or 1")
    return int(label)
