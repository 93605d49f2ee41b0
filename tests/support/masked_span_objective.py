"""The objective of ``span_objective`` with additional masks, drawn when examples are loaded."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from bertdata.config.declared import setting
from bertdata.examples.groups import MASKS
from bertdata.examples.made_examples import ListedExamples
from bertdata.records import Buffer, Documents, Example, MadeExamples, ShardLayout, Vocabulary, column
from schemas import load_schema
from tests.support.span_objective import (
    FIELDS,
    SpanBatch,
    SpanExample,
    SpanObjective,
    SpanSettings,
    examples_of,
)

NAME = "tests.support.masked_span_objective:MASKED_SPANS"
_MASKS = {
    container: {name: field for name, field in fields.items() if field.get("of") in ("positions", "labels")}
    for container, fields in load_schema("example")["mlm"].items()
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedSpanSettings(SpanSettings):
    """The settings of ``span_objective``, and the largest number of masks in an example."""

    objective: str = setting(NAME, "objective of the examples")
    max_predictions_per_seq: int = setting(8, "most masks of an example")

    @property
    def layout(self) -> ShardLayout:
        names = ("max_seq_length", "max_predictions_per_seq", "max_spans")
        return ShardLayout.of_sizes({name: getattr(self, name) for name in names}, objective=self.objective)


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedSpanExample(SpanExample):
    """A single example: the fields of one row of MaskedSpanBatch."""

    positions: list[int]
    labels: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MaskedSpanBatch(SpanBatch):
    """N examples with spans, word starts and masks."""

    example_type: ClassVar[type[Example]] = MaskedSpanExample

    positions: Buffer = column("uint16", group=MASKS, ends="mask_ends", is_place=True)
    labels: Buffer = column("id", group=MASKS, ends="mask_ends")
    mask_ends: Buffer = column("uint32")


class MaskedSpanObjective(SpanObjective):
    """An objective with spans besides masked words, so that the built-in task can train on it."""

    task = "masked_words"
    settings_type = MaskedSpanSettings
    batch_type = MaskedSpanBatch

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: str | None = None
    ) -> MadeExamples:
        found = [
            MaskedSpanExample(**asdict(one), positions=[], labels=[])
            for one in examples_of(documents, vocabulary, settings)
        ]
        return ListedExamples(found, MaskedSpanBatch, wide=vocabulary.wide)


MASKED_SPANS = MaskedSpanObjective(
    NAME,
    {container: fields | _MASKS[container] for container, fields in FIELDS.items() if container in _MASKS},
)
