"""The example types and batch types of fine-tuning examples with a label or a score."""

import struct
from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, ColumnGroup, Example, ExampleBatch, column

LABEL = ColumnGroup(name="label")
SCORE = ColumnGroup(name="score")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledExample(Example):
    """Example ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]`` with the number of its label."""

    first_length: int
    label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LabelledBatch(ExampleBatch):
    """N labelled examples without padding.

    In example i, the first ``first_lengths[i]`` ids belong to segment A.
    """

    example_type: ClassVar[type[Example]] = LabelledExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    label_ids: Buffer = column("uint32", group=LABEL, one="label")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredExample(Example):
    """One example with a score.

    The score is stored as a 32-bit float, in two halves: its upper and its lower 16 bits.
    """

    first_length: int
    score_high: int
    score_low: int

    @property
    def score(self) -> float:
        """The score, rounded to a 32-bit float."""
        found: float = struct.unpack("<f", struct.pack("<HH", self.score_low, self.score_high))[0]
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoredBatch(ExampleBatch):
    """N scored examples without padding.

    In example i, the first ``first_lengths[i]`` ids belong to segment A.

    Columns can only hold integers. Each score is therefore stored as the upper and lower 16 bits of a 32-bit
    float, which keeps it exact.
    """

    example_type: ClassVar[type[Example]] = ScoredExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    score_highs: Buffer = column("uint16", group=SCORE, one="score_high", most=0xFFFF)
    score_lows: Buffer = column("uint16", group=SCORE, one="score_low", most=0xFFFF)


def split_score(score: float) -> tuple[int, int]:
    """Return the two halves of the score as a 32-bit float: its upper and its lower 16 bits as integers."""
    low, high = struct.unpack("<HH", struct.pack("<f", score))
    return high, low
