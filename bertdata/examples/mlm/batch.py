"""Columns of masked blocks."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS
from bertdata.records import Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class MlmExample(Example):
    """One block ``[CLS] sentence [SEP] sentence [SEP] ...``, with the fields of MlmBatch for one row."""

    positions: list[int]
    labels: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MlmBatch(ExampleBatch):
    """N blocks ``[CLS] sentence [SEP] sentence [SEP] ...`` without padding, masks applied.

    The masks of block i are ``positions[mask_ends[i-1]:mask_ends[i]]``, ascending, and ``labels`` at the same
    place (the original ids).
    """

    example_type: ClassVar[type[Example]] = MlmExample

    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
