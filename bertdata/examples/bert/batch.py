"""Columns of BERT's examples."""

from dataclasses import dataclass
from typing import ClassVar

from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT, WORD_STARTS
from bertdata.records import IDS_ENDS, Buffer, Example, ExampleBatch, column


@dataclass(frozen=True, kw_only=True, slots=True)
class BertExample(Example):
    """One example ``[CLS] A [SEP] B [SEP]``. Fields as in BertBatch, for one row."""

    first_length: int
    positions: list[int]
    labels: list[int]
    next_label: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatch(ExampleBatch):
    """N examples ``[CLS] A [SEP] B [SEP]`` without padding, masks applied.

    The first ``first_lengths[i]`` ids of example i are segment 0. Its masks are
    ``positions[mask_ends[i-1]:mask_ends[i]]``, ascending, and ``labels`` at the same place (the
    original ids). ``next_labels[i]`` is 1 where B is random.
    """

    example_type: ClassVar[type[Example]] = BertExample

    first_lengths: Buffer = column("uint32", group=SEGMENT, one="first_length", is_place=True)
    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", noun="masked position", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")
    next_labels: Buffer = column("uint8", group=PAIR_LABEL, one="next_label", most=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class BertExampleOfWords(BertExample):
    """One example with a bit for each id: 1 where a word starts, at special ids and behind them."""

    word_starts: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BertBatchOfWords(BertBatch):
    """N examples with their word starts."""

    example_type: ClassVar[type[Example]] = BertExampleOfWords

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
