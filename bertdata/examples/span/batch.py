"""The example type and the batch type of blocks with masked spans."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, ColumnGroup, Example, ExampleBatch, column

SPANS = ColumnGroup(name="spans", items="spans", size=MASKS.size)
"""Group of columns with the two boundaries of each span that has targets, that is, ids to predict.

An example never has more spans than masked positions, so the size is that of the masks.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanExample(Example):
    """One block ``[CLS] text [SEP]``.

    ``SpanBatch`` describes the attributes, with one item per block. Here they hold the values of this block.
    """

    positions: list[int]
    labels: list[int]
    left_boundaries: list[int]
    right_boundaries: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SpanBatch(ExampleBatch):
    """N blocks ``[CLS] text [SEP]`` without padding, masks applied.

    positions: masked positions, ascending. Block i has ``positions[mask_ends[i-1]:mask_ends[i]]``.
    labels: the original id at each masked position.
    left_boundaries: for each span, the position on its left from which its ids are predicted. Block i has
        ``left_boundaries[span_ends[i-1]:span_ends[i]]``.
    right_boundaries: for each span, the position on its right from which its ids are predicted. The ids to
        predict from a span's boundaries are the masked positions from its left to its right boundary.
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
    """SpanExample that also stores where words start.

    word_starts: one item per id. It is 1 if a word starts at this id, at each special token and at the id
        right after a special token, else 0.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SpanBatchOfWords(SpanBatch):
    """SpanBatch that also stores where words start. ``SpanExampleOfWords`` describes ``word_starts``."""

    example_type: ClassVar[type[Example]] = SpanExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
