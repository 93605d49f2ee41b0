"""Columns of SQuAD's examples."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, ColumnGroup, Example, ExampleBatch, column

ANSWER = ColumnGroup(name="answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadExample(Example):
    """Example ``[CLS] question [SEP] context [SEP]``.

    The fields are those of SquadBatch for one example.
    """

    first_length: int
    answer_start: int
    answer_end: int
    impossible: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SquadBatch(ExampleBatch):
    """N examples ``[CLS] question [SEP] context [SEP]`` without padding.

    A long context is divided into several examples, each with a part of it.
    first_lengths: number of ids of segment 0, which is ``[CLS] question [SEP]``.
    answer_starts, answer_ends: positions of the answer's first and last token. Both are 0 if this part of the
    context does not contain the whole answer, or if no answers were read.
    impossible: 1 if the question has no answer.
    """

    example_type: ClassVar[type[Example]] = SquadExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    answer_starts: Buffer = column("uint32", group=ANSWER, one="answer_start", is_place=True)
    answer_ends: Buffer = column("uint32", group=ANSWER, one="answer_end", is_place=True)
    impossible: Buffer = column("uint8", group=ANSWER, most=1)
