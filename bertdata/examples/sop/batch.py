"""Columns of ALBERT's examples."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class SopExample(Example):
    """One example ``[CLS] A [SEP] B [SEP]``, with the fields of SopBatch for one row."""

    first_length: int
    word_starts: list[int]
    positions: list[int]
    labels: list[int]
    order_label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SopBatch(ExampleBatch):
    """N examples ``[CLS] A [SEP] B [SEP]`` without padding, masks applied.

    The first ``first_lengths[i]`` ids of example i are segment 0. ``word_starts`` has an item for each id, 1
    where a word of the unmasked text starts and for [CLS] and [SEP]. The masks of example i are
    ``positions[mask_ends[i-1]:mask_ends[i]]``, ascending, and ``labels`` at the same place (the original
    ids). ``order_labels[i]`` is 1 where the segments are swapped, or B is random.
    """

    example_type: ClassVar[type[Example]] = SopExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
    order_labels: Buffer = column("uint8", group=PAIR_LABEL, one="order_label", most=1)
