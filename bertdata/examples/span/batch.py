"""Columns of masked spans."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, ColumnGroup, Example, ExampleBatch, column

SPANS = ColumnGroup(name="spans", items="spans", size=MASKS.size)
"""The two boundaries of each span that has targets. There are never more spans than masked positions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanExample(Example):
    """One block ``[CLS] text [SEP]``. The fields are those of SpanBatch for one block."""

    positions: list[int]
    labels: list[int]
    left_boundaries: list[int]
    right_boundaries: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SpanBatch(ExampleBatch):
    """N blocks ``[CLS] text [SEP]`` without padding, masks applied.

    positions: masked positions, ascending. Block i has ``positions[mask_ends[i-1]:mask_ends[i]]``.
    labels: the original id at each masked position.
    left_boundaries, right_boundaries: the positions from which the ids of a span are predicted. Block i has
    ``left_boundaries[span_ends[i-1]:span_ends[i]]``. The targets of a span are the masked positions from its
    left to its right boundary.
    """

    example_type: ClassVar[type[Example]] = SpanExample

    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
    left_boundaries: Buffer = column(
        "uint16", group=SPANS, ends="span_ends", noun="left boundary", is_place=True
    )
    right_boundaries: Buffer = column(
        "uint16", group=SPANS, ends="span_ends", noun="right boundary", is_place=True
    )
    span_ends: Buffer = column("uint32")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanExampleOfWords(SpanExample):
    """One block with a bit for each id: 1 if a word starts there. Special tokens and the ids right after them
    also have a 1.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SpanBatchOfWords(SpanBatch):
    """N blocks with word starts."""

    example_type: ClassVar[type[Example]] = SpanExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
