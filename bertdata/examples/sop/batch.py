"""The example type and the batch type of ALBERT's objective."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class SopExample(Example):
    """One example ``[CLS] A [SEP] B [SEP]``.

    ``SopBatch`` describes the attributes, with one item per example. Here they hold the values of this
    example.
    """

    first_length: int
    word_starts: list[int]
    positions: list[int]
    labels: list[int]
    order_label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SopBatch(ExampleBatch):
    """N examples ``[CLS] A [SEP] B [SEP]`` without padding, masks applied.

    first_lengths: number of ids of segment A with its special tokens, ``[CLS] A [SEP]``.
    word_starts: one item per id. It is 1 where a word of the unmasked text starts, and at [CLS] and [SEP],
        else 0.
    positions: masked positions, ascending. Example i has ``positions[mask_ends[i-1]:mask_ends[i]]``.
    labels: the original id at each masked position.
    order_labels: 1 if the segments are swapped or B is random, else 0.
    """

    example_type: ClassVar[type[Example]] = SopExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
    order_labels: Buffer = column("uint8", group=PAIR_LABEL, one="order_label", most=1)
