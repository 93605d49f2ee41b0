"""Columns of SQuAD's examples."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, ColumnGroup, Example, ExampleBatch, column

ANSWER = ColumnGroup(name="answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadExample(Example):
    """One example ``[CLS] question [SEP] span [SEP]``. Fields as in SquadBatch, for one row."""

    first_length: int
    answer_start: int
    answer_end: int
    impossible: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SquadBatch(ExampleBatch):
    """N examples ``[CLS] question [SEP] span [SEP]`` without padding.

    The first ``first_lengths[i]`` ids of example i are segment 0. Its answer's first and last token are at
    ``answer_starts[i]`` and ``answer_ends[i]``, both 0 where the span does not hold it whole, and where no
    answers were read. ``impossible[i]`` is 1 where the question has no answer.
    """

    example_type: ClassVar[type[Example]] = SquadExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    answer_starts: Buffer = column("uint32", group=ANSWER, one="answer_start", is_place=True)
    answer_ends: Buffer = column("uint32", group=ANSWER, one="answer_end", is_place=True)
    impossible: Buffer = column("uint8", group=ANSWER, most=1)
