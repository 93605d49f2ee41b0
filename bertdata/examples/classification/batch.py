"""Columns of labelled and of scored examples."""

import struct
from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, ColumnGroup, Example, ExampleBatch, column

LABEL = ColumnGroup(name="label")
SCORE = ColumnGroup(name="score")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledExample(Example):
    """One example ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]`` with the number of its label."""

    first_length: int
    label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LabelledBatch(ExampleBatch):
    """N labelled examples without padding. The first ``first_lengths[i]`` ids of example i are segment 0."""

    example_type: ClassVar[type[Example]] = LabelledExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    label_ids: Buffer = column("uint32", group=LABEL, one="label")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredExample(Example):
    """One example with its score as two halves of the bits of a float."""

    first_length: int
    score_high: int
    score_low: int

    @property
    def score(self) -> float:
        """The score, rounded to a C float."""
        found: float = struct.unpack("<f", struct.pack("<HH", self.score_low, self.score_high))[0]
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoredBatch(ExampleBatch):
    """N scored examples without padding. The first ``first_lengths[i]`` ids of example i are segment 0.

    Columns hold integers, so a score is the bits of a C float, the upper 16 and the lower 16: a record holds
    any score exactly.
    """

    example_type: ClassVar[type[Example]] = ScoredExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    score_highs: Buffer = column("uint16", group=SCORE, one="score_high", most=0xFFFF)
    score_lows: Buffer = column("uint16", group=SCORE, one="score_low", most=0xFFFF)


def split_score(score: float) -> tuple[int, int]:
    """The upper and the lower 16 bits of the score as a C float."""
    low, high = struct.unpack("<HH", struct.pack("<f", score))
    return high, low
