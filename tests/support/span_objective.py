"""A user-defined objective with two groups of columns unknown to the package: spans and word starts.

A span is a range of tokens, stored as its first and last token, with a label: its number of tokens. Each id
also has a bit that says whether a word begins there. Nothing is masked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.objective import Objective
from bertdata.records import (
    IDS_ENDS,
    Buffer,
    ColumnGroup,
    Documents,
    Example,
    ExampleBatch,
    MadeExamples,
    ShardLayout,
    Vocabulary,
    column,
)

NAME = "tests.support.span_objective:SPAN_OBJECTIVE"
SPANS = ColumnGroup(name="spans", items="spans", size="max_spans")

IDS = {"type": "int64", "shape": "S", "padding": 0, "of": "ids"}
BITS = {**IDS, "of": "word_starts"}
FIRSTS = {"type": "int64", "shape": "max_spans", "padding": 0, "of": "first_tokens"}
LASTS = {**FIRSTS, "of": "last_tokens"}
LABELS = {**FIRSTS, "of": "span_labels"}
FIELDS = {
    "tfrecord": {
        "tokens": IDS,
        "tokens_used": {**IDS, "as": "ones"},
        "word_starts": BITS,
        "span_firsts": FIRSTS,
        "span_lasts": LASTS,
        "span_labels": LABELS,
        "spans_used": {**FIRSTS, "type": "float32", "as": "ones"},
    },
    "hdf5": {
        "tokens": {**IDS, "type": "int32"},
        "tokens_used": {**IDS, "type": "int8", "as": "ones"},
        "word_starts": {**BITS, "type": "int8"},
        "span_firsts": {**FIRSTS, "type": "int32"},
        "span_lasts": {**LASTS, "type": "int32"},
        "span_labels": {**LABELS, "type": "int32", "ends_at_padding": True},
    },
    "parquet": {
        "tokens": {"type": "int32", "shape": "*", "of": "ids"},
        "word_starts": {"type": "int8", "shape": "*", "of": "word_starts"},
        "span_firsts": {"type": "int32", "shape": "*", "of": "first_tokens"},
        "span_lasts": {"type": "int32", "shape": "*", "of": "last_tokens"},
        "span_labels": {"type": "int32", "shape": "*", "of": "span_labels"},
    },
    "huggingface": {
        "input_ids": IDS,
        "attention_mask": {**IDS, "as": "ones"},
        "starts_word": BITS,
        "span_firsts": {**FIRSTS, "padding": -1},
        "span_labels": {**LABELS, "padding": -1},
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanSettings(ExampleSettings):
    """The objective's settings.

    ``blocks`` is a number here. In the built-in objective it is a choice of words.
    """

    objective: str = setting(NAME, "objective of the examples")
    max_spans: int = setting(30, "most spans of an example")
    span_tokens: int = setting(3, "most tokens of a span")
    blocks: int = setting(0, "a number, which does nothing")

    @property
    def layout(self) -> ShardLayout:
        sizes = {"max_seq_length": self.max_seq_length, "max_spans": self.max_spans}
        return ShardLayout.of_sizes(sizes, objective=self.objective)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanExample(Example):
    """A single example: the fields of one row of SpanBatch."""

    word_starts: list[int]
    first_tokens: list[int]
    last_tokens: list[int]
    span_labels: list[int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SpanBatch(ExampleBatch):
    """N examples. Span k contains the tokens ``first_tokens[k]`` to ``last_tokens[k]``."""

    example_type: ClassVar[type[Example]] = SpanExample

    word_starts: Buffer = column("uint8", group=WORD_STARTS, ends=IDS_ENDS, most=1)
    first_tokens: Buffer = column("uint32", group=SPANS, ends="span_ends", is_place=True)
    last_tokens: Buffer = column("uint32", group=SPANS, ends="span_ends", is_place=True)
    span_labels: Buffer = column("uint16", group=SPANS, ends="span_ends")
    span_ends: Buffer = column("uint32")


class SpanObjective(Objective):
    """An objective with spans of text and their labels."""

    task = "tests.support.span_task:SpanTask"
    settings_type = SpanSettings
    batch_type = SpanBatch

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: str | None = None
    ) -> MadeExamples:
        found = list(examples_of(documents, vocabulary, settings))
        return ListedExamples(found, SpanBatch, wide=vocabulary.wide)


def examples_of(
    documents: Documents, vocabulary: Vocabulary, settings: SpanSettings
) -> Iterator[SpanExample]:
    """Yield an example for each sentence: [CLS], then the sentence, covered by spans of whole words."""
    for start, stop in pairwise([0, *documents.sentence_ends]):
        ids = [vocabulary.cls, *documents.ids[start:stop]][: settings.max_seq_length]
        begins = [1 - vocabulary.continues_word[token] for token in ids]
        firsts = list(range(1, len(ids), settings.span_tokens))[: settings.max_spans]
        lasts = [min(first + settings.span_tokens, len(ids)) - 1 for first in firsts]
        yield SpanExample(
            ids=ids,
            word_starts=begins,
            first_tokens=firsts,
            last_tokens=lasts,
            span_labels=[last - first + 1 for first, last in zip(firsts, lasts, strict=True)],
        )


SPAN_OBJECTIVE = SpanObjective(NAME, FIELDS)
