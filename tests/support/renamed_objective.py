"""BERT's objective with other column names. Code that asks for a column by BERT's name fails."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bertdata.examples.bert.objective import BERT
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.groups import MASKS, PAIR_LABEL, SEGMENT
from bertdata.examples.mask_report import MaskCounts, describe_masks
from bertdata.examples.objective import Objective, ObjectiveCounts
from bertdata.records import (
    Buffer,
    Documents,
    Example,
    ExampleBatch,
    MadeExamples,
    ShardLayout,
    Vocabulary,
    column,
)
from schemas import load_schema

NAME = "tests.support.renamed_objective:RENAMED"
NAMES = {
    "first_lengths": "splits",
    "positions": "hidden_at",
    "labels": "hidden_ids",
    "mask_ends": "hidden_ends",
    "next_labels": "orders",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RenamedExample(Example):
    """A single example: the fields of one row of RenamedBatch."""

    split: int
    hidden_at: list[int]
    hidden_ids: list[int]
    order: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RenamedBatch(ExampleBatch):
    """N examples with the renamed columns."""

    example_type: ClassVar[type[Example]] = RenamedExample

    splits: Buffer = column("uint32", group=SEGMENT, one="split", is_place=True)
    hidden_at: Buffer = column(
        "uint16", group=MASKS, ends="hidden_ends", noun="masked position", is_place=True
    )
    hidden_ids: Buffer = column("id", group=MASKS, ends="hidden_ends")
    hidden_ends: Buffer = column("uint32")
    orders: Buffer = column("uint8", group=PAIR_LABEL, one="order", most=1)


class RenamedCounts(MaskCounts, ObjectiveCounts):
    """Number of masks of each type."""


class RenamedExamples:
    """BERT's examples with the renamed columns."""

    def __init__(self, made: MadeExamples) -> None:
        self._made, self.tokens, self.masked = made, made.tokens, made.masked

    def __len__(self) -> int:
        return len(self._made)

    def batch(self, start: int, stop: int, step: int = 1) -> RenamedBatch:
        batch = self._made.batch(start, stop, step)
        values = {item.name: getattr(batch, item.name) for item in batch.columns()}
        return RenamedBatch(**{NAMES.get(name, name): value for name, value in values.items()})


class RenamedObjective(Objective):
    """BERT's objective with the renamed columns."""

    settings_type = BertSettings
    batch_type = RenamedBatch

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Any = None
    ) -> MadeExamples:
        return RenamedExamples(BERT.make(documents, vocabulary, settings, engine))

    def most_masks(self, settings: Mapping[str, Any], length: int) -> int:
        return BERT.most_masks(settings, length)

    def counts(self) -> RenamedCounts:
        return RenamedCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        lines = describe_masks(example.ids, example.hidden_at, example.hidden_ids, words, mask_id)
        return "\n".join(["masks", *lines, ""])


RENAMED = RenamedObjective(
    NAME,
    {
        form: {name: {**field, "of": NAMES.get(field["of"], field["of"])} for name, field in fields.items()}
        for form, fields in load_schema("example")["bert"].items()
    },
)
