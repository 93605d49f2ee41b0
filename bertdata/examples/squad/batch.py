"""The example type and the batch type of SQuAD's questions."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import SEGMENT
from bertdata.records import Buffer, ColumnGroup, Example, ExampleBatch, column

ANSWER = ColumnGroup(name="answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class SquadExample(Example):
    """One example ``[CLS] question [SEP] context [SEP]``.

    ``SquadBatch`` describes the attributes, with one item per example. Here they hold the values of this
    example.
    """

    first_length: int
    answer_start: int
    answer_end: int
    impossible: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SquadBatch(ExampleBatch):
    """N examples ``[CLS] question [SEP] context [SEP]`` without padding.

    A long context is divided among several examples, which all have the same question.

    first_lengths: number of ids of the question with its special tokens, ``[CLS] question [SEP]``.
    answer_starts: position of the answer's first token. 0 if this example does not contain the whole answer,
        or if no answers were read.
    answer_ends: position of the answer's last token. 0 if this example does not contain the whole answer, or
        if no answers were read.
    impossible: 1 if the question has no answer, else 0.
    """

    example_type: ClassVar[type[Example]] = SquadExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    answer_starts: Buffer = column("uint32", group=ANSWER, one="answer_start", is_place=True)
    answer_ends: Buffer = column("uint32", group=ANSWER, one="answer_end", is_place=True)
    impossible: Buffer = column("uint8", group=ANSWER, most=1)
