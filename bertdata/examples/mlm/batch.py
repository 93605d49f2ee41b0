"""Columns of masked blocks."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class MlmExample(Example):
    """One block ``[CLS] sentence [SEP] sentence [SEP] ...``.

    The fields are those of MlmBatch for one block.
    """

    positions: list[int]
    labels: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MlmBatch(ExampleBatch):
    """N blocks ``[CLS] sentence [SEP] sentence [SEP] ...`` without padding, masks applied.

    positions: masked positions, ascending. Block i has ``positions[mask_ends[i-1]:mask_ends[i]]``.
    labels: the original id at each masked position.
    """

    example_type: ClassVar[type[Example]] = MlmExample

    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")


@dataclass(frozen=True, kw_only=True, slots=True)
class MlmExampleOfWords(MlmExample):
    """One block with a bit for each id: 1 if a word starts there. Special tokens and the ids right after them
    also have a 1.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MlmBatchOfWords(MlmBatch):
    """N blocks with word starts."""

    example_type: ClassVar[type[Example]] = MlmExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
