"""The objective of SpanBERT: predict masked spans, also from their boundaries."""

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import sub
from typing import TYPE_CHECKING, Any

from bertdata._native import Engine
from bertdata.examples.counting import (
    compute_ratio,
    compute_sizes,
    convert_to_ints,
    describe_distribution,
    sum_weighted,
)
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.mask_report import MaskCounts, describe_masks
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.objective import Findings, Objective, ObjectiveCounts, Totals, join_tokens
from bertdata.examples.span.batch import SpanBatch, SpanBatchOfWords
from bertdata.examples.span.make import make_spans
from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.word_starts import with_word_starts
from bertdata.records import Documents, MadeExamples, ShardLayout, Vocabulary
from schemas import load_schema

if TYPE_CHECKING:
    from bertdata.examples.dynamic_masking.masker import Masker


class SpanCounts(MaskCounts, ObjectiveCounts):
    """Counts of blocks with masked spans.

    They contain the counts of masks, the distances between the two boundaries of a span, and the number of
    spans per example.
    """

    def __init__(self) -> None:
        super().__init__()
        self.distances: Counter[int] = Counter()
        self.spans: Counter[int] = Counter()

    def add(self, batch: Any) -> None:
        super().add(batch)
        self.distances.update(
            map(sub, convert_to_ints(batch.right_boundaries), convert_to_ints(batch.left_boundaries))
        )
        self.spans.update(compute_sizes(convert_to_ints(batch.span_ends)))

    def merge(self, other: Any) -> None:
        super().merge(other)
        self.distances.update(other.distances)
        self.spans.update(other.spans)

    def findings(self, totals: Totals) -> Findings:
        """Return the statistics of the masks. If there are spans, add the statistics of the spans."""
        found = super().findings(totals)
        if not self.distances:
            return found
        section = self._make_span_section(totals)
        return Findings([*found.rows, *self._make_span_rows(section)], {**found.sections, "spans": section})

    def _make_span_section(self, totals: Totals) -> dict[str, Any]:
        between = 1 if totals.settings.get("endpoints") == "internal" else -1
        targets = Counter({distance + between: count for distance, count in self.distances.items()})
        return {
            "spans": self.distances.total(),
            "per_example": describe_distribution(self.spans),
            "targets": describe_distribution(targets),
            "target_share": compute_ratio(sum_weighted(targets), self.masked_tokens),
        }

    def _make_span_rows(self, section: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield "spans", f"{section['spans']:,} between two boundaries"
        for label, name in (("  per example", "per_example"), ("  ids", "targets")):
            of = section[name]
            yield label, f"mean {of['mean']:.2f}, {of['min']} to {of['max']}"


class SpanObjective(Objective):
    """Objective of masked spans in one segment. Their ids are also predicted from the spans' boundaries."""

    settings_type = SpanSettings
    batch_type: type[SpanBatch] = SpanBatch
    task = "span_boundaries"
    of_words = "span_word_starts"

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> MadeExamples:
        return make_spans(documents, vocabulary, settings, engine, self.batch_type)

    def masker(
        self,
        vocabulary: Vocabulary,
        masking: MaskingSettings,
        of_data: Mapping[str, Any],
        engine: Engine | None = None,
    ) -> "Masker":
        from bertdata.examples.span.load_masker import make_span_masker

        return make_span_masker(vocabulary, masking, of_data, engine)

    def counts(self) -> SpanCounts:
        return SpanCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return the tokens of the block, then a line for each mask and for each span.

        The line of a mask has its position, what replaced the token, and the original token. The line of a
        span has the positions of its boundaries and the tokens to predict:

        ::

            12 ids and 116 of padding, 2 masks, 1 span with targets
              [CLS] a lighthouse [MASK] [MASK] tower whose keeper kept bees [SEP]
              3   [MASK]  is
              4   [MASK]  a
              2 to 5: is a
        """
        padding = layout.max_seq_length - len(example.ids)
        spans = list(zip(example.left_boundaries, example.right_boundaries, strict=True))
        counted = f"{len(spans)} span{'s' * (len(spans) != 1)} with targets"
        label_at = dict(zip(example.positions, example.labels, strict=True))
        lines = [
            f"{len(example.ids)} ids and {padding} of padding, {len(example.positions)} masks, {counted}",
            f"  {join_tokens(example.ids, words)}",
            *describe_masks(example.ids, example.positions, example.labels, words, mask_id),
        ]
        for left, right in spans:
            targets = [label_at[place] for place in range(left, right + 1) if place in label_at]
            lines.append(f"  {left} to {right}: {join_tokens(targets, words)}")
        return "\n".join(lines) + "\n"


class SpanObjectiveOfWords(SpanObjective):
    """SpanBERT's objective whose examples also store where words start."""

    batch_type = SpanBatchOfWords
    of_words = ""
    unlearned = (WORD_STARTS,)


SPAN = SpanObjective("span", load_schema("example")["span"])
SPAN_OF_WORDS = SpanObjectiveOfWords(SpanObjective.of_words, with_word_starts(load_schema("example")["span"]))
