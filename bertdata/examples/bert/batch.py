"""Columns of BERT's examples."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class BertExample(Example):
    """Example ``[CLS] A [SEP] B [SEP]``. The fields are those of BertBatch for one example."""

    first_length: int
    positions: list[int]
    labels: list[int]
    next_label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatch(ExampleBatch):
    """N examples ``[CLS] A [SEP] B [SEP]`` without padding, masks applied.

    first_lengths: number of ids of segment 0, which is ``[CLS] A [SEP]``.
    positions: masked positions, ascending. Example i has ``positions[mask_ends[i-1]:mask_ends[i]]``.
    labels: the original id at each masked position.
    next_labels: 1 if B is a random segment, 0 if B follows A.
    """

    example_type: ClassVar[type[Example]] = BertExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
    next_labels: Buffer = column("uint8", group=PAIR_LABEL, one="next_label", most=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class BertExampleOfWords(BertExample):
    """One example with a bit for each id: 1 if a word starts there. Special tokens and the ids right after
    them also have a 1.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatchOfWords(BertBatch):
    """N examples with word starts."""

    example_type: ClassVar[type[Example]] = BertExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
