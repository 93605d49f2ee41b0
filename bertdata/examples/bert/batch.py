"""The example type and the batch type of BERT's objective."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class BertExample(Example):
    """One example ``[CLS] A [SEP] B [SEP]``.

    ``BertBatch`` describes the attributes, with one item per example. Here they hold the values of this
    example.
    """

    first_length: int
    positions: list[int]
    labels: list[int]
    next_label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatch(ExampleBatch):
    """N examples ``[CLS] A [SEP] B [SEP]`` without padding, masks applied.

    first_lengths: number of ids of segment A with its special tokens, ``[CLS] A [SEP]``.
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
    """BertExample that also stores where words start.

    word_starts: one item per id. It is 1 if a word starts at this id, at each special token and at the id
        right after a special token, else 0.
    """

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatchOfWords(BertBatch):
    """BertBatch that also stores where words start. ``BertExampleOfWords`` describes ``word_starts``."""

    example_type: ClassVar[type[Example]] = BertExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
