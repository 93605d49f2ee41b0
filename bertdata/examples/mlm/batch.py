"""The example type and the batch type of masked blocks."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class MlmExample(Example):
    """One block ``[CLS] sentence [SEP] sentence [SEP] ...``.

    ``MlmBatch`` describes the attributes, with one item per block. Here they hold the values of this block.
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
    """MlmExample that also stores where words start.

    word_starts: one item per id. It is 1 if a word starts at this id, at each special token and at the id
        right after a special token, else 0.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MlmBatchOfWords(MlmBatch):
    """MlmBatch that also stores where words start. ``MlmExampleOfWords`` describes ``word_starts``."""

    example_type: ClassVar[type[Example]] = MlmExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
