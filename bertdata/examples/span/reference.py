"""Pure-Python twin of the C++ kernel of masked spans. It cuts blocks, draws spans and shuffles the blocks."""

from collections.abc import Iterator, Sequence

from bertdata.examples.dynamic_masking.counter_stream import make_pass_keys
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.prepared_settings import starts_of
from bertdata.examples.random_stream import NumpyStream, RandomStream
from bertdata.examples.span.batch import SpanBatch, SpanExample
from bertdata.examples.span.blocks import Extent, cut_text_into_blocks
from bertdata.examples.span.masking import (
    Span,
    draw_spans,
    find_boundaries,
    prepare_span_rules,
    replace_spans,
)
from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import BlockStream
from bertdata.records import Documents, Vocabulary


class ReferenceSpans(ListedExamples):
    """SpanBERT's examples of the documents: blocks with masked spans, made in pure Python."""

    def __init__(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: SpanSettings,
        batch_type: type[SpanBatch],
    ) -> None:
        self._ids, self._vocabulary, self._kind = documents.ids, vocabulary, batch_type
        self._rules = prepare_span_rules(settings)
        self._starts = _find_word_starts(documents, vocabulary, settings, batch_type)
        bodies = list(
            cut_text_into_blocks(documents, settings.longest_body, as_original=settings.as_original)
        )
        examples = list(self._make_examples(documents, bodies, settings))
        if not settings.as_original:
            RandomStream(settings.random_seed).shuffle(examples)
        # A body is the text of a block, without [CLS] and [SEP]. Bodies do not overlap, and each pass uses
        # the same bodies, so the ids outside of them are lost.
        lost = documents.tokens - sum(stop - start for start, stop in bodies)
        super().__init__(examples, batch_type, wide=vocabulary.wide, lost=lost)

    def _make_examples(
        self, documents: Documents, bodies: Sequence[Extent], settings: SpanSettings
    ) -> Iterator[SpanExample]:
        """Yield the examples of all passes over the text. Within a pass they are in the order of the text."""
        # SpanBERT's program draws random ids from the text itself, and all its draws come from one NumPy
        # stream.
        pool = documents.ids if settings.as_original else self._vocabulary.replacements
        stream_of_all = NumpyStream(settings.numpy_seed) if settings.as_original else None
        for key in make_pass_keys(documents, settings.random_seed, settings.dupe_factor):
            for number, (start, stop) in enumerate(bodies):
                shown, spans = self._ids[start:stop], list[Span]()
                if settings.masks:
                    stream = stream_of_all or BlockStream(key, number)
                    spans = draw_spans(self._starts[start:stop], self._rules, stream)
                    shown = replace_spans(
                        shown, spans, self._rules, self._vocabulary.role("mask"), pool, stream
                    )
                yield self._make_example(start, stop, shown, spans)

    def _make_example(self, start: int, stop: int, shown: Sequence[int], spans: list[Span]) -> SpanExample:
        """Make the example whose text has the ids from index start to stop - 1, with special tokens around
        them.

        Special tokens count as word starts, and so does the id after [CLS].

        shown: the ids with masks applied.
        spans: the masked spans, counted from the start of the text.
        """
        body, vocabulary = self._ids[start:stop], self._vocabulary
        masked = [position for first, behind in spans for position in range(first, behind)]
        found = find_boundaries(spans, len(body), are_external=self._rules.are_external)
        # Positions in the example are larger by one than in the text, because [CLS] comes first.
        columns = {
            "ids": [vocabulary.role("cls"), *shown, vocabulary.role("sep")],
            "positions": [position + 1 for position in masked],
            "labels": [body[position] for position in masked],
            "left_boundaries": [left + 1 for left, _ in found],
            "right_boundaries": [right + 1 for _, right in found],
        }
        if has_group(self._kind, WORD_STARTS):
            columns["word_starts"] = [1, 1, *self._starts[start + 1 : stop], 1]
        made: SpanExample = self._kind.example_type(**columns)  # type: ignore[assignment] # its own class
        return made


def _find_word_starts(
    documents: Documents, vocabulary: Vocabulary, settings: SpanSettings, batch_type: type[SpanBatch]
) -> Sequence[int]:
    """Return for each id of the text 1 if a word starts there, else 0."""
    known = starts_of(documents, vocabulary, settings.masking, batch_type)
    if known is not None:
        return [int(start != 0) for start in known]
    continues = vocabulary.continues_word or bytes(vocabulary.size)
    return [1 - continues[token] for token in documents.ids]
