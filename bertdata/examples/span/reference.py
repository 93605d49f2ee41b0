"""The readable twin of the kernel of masked spans: blocks, masks, boundaries, the final shuffle."""

from collections.abc import Iterator, Sequence

from bertdata.examples.made_examples import ListedExamples
from bertdata.examples.masking.passes import pass_keys
from bertdata.examples.numpy_stream import NumpyStream
from bertdata.examples.random_stream import RandomStream
from bertdata.examples.span.batch import SpanBatch, SpanExample
from bertdata.examples.span.blocks import cut_bodies
from bertdata.examples.span.masking import SpanRules, boundaries, draw_spans, replace, span_rules
from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import BlockStream, SpanStream
from bertdata.records import Documents, Vocabulary


class ReferenceSpans(ListedExamples):
    """The blocks of some documents with masked spans, made as the specification reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SpanSettings) -> None:
        examples = list(_examples(documents, vocabulary, settings))
        if not settings.as_original:
            RandomStream(settings.random_seed).shuffle(examples)
        super().__init__(examples, SpanBatch, wide=vocabulary.wide)


def _examples(documents: Documents, vocabulary: Vocabulary, settings: SpanSettings) -> Iterator[SpanExample]:
    """The examples of all passes in the order of the text."""
    bodies = list(cut_bodies(documents, settings.longest_body, as_original=settings.as_original))
    ids, rules, starts = documents.ids, span_rules(settings), word_starts(documents, vocabulary)
    pool = ids if settings.as_original else vocabulary.replacements
    numpy_stream = NumpyStream(settings.random_seed) if settings.as_original else None
    for key in pass_keys(documents, settings.random_seed, settings.dupe_factor):
        for number, (start, stop) in enumerate(bodies):
            stream = numpy_stream or BlockStream(key, number)
            if settings.masks:
                yield _masked(ids[start:stop], starts[start:stop], rules, vocabulary, pool, stream)
            else:
                yield _example(ids[start:stop], ids[start:stop], [], rules, vocabulary)


def _masked(
    body: Sequence[int],
    starts: Sequence[int],
    rules: SpanRules,
    vocabulary: Vocabulary,
    pool: Sequence[int],
    stream: SpanStream,
) -> SpanExample:
    spans = draw_spans(starts, rules, stream)
    shown = replace(body, spans, rules, vocabulary.role("mask"), pool, stream)
    return _example(body, shown, spans, rules, vocabulary)


def _example(
    body: Sequence[int],
    shown: Sequence[int],
    spans: list[tuple[int, int]],
    rules: SpanRules,
    vocabulary: Vocabulary,
) -> SpanExample:
    """The block with its special ids. Places count from [CLS] on."""
    masked = [position for start, stop in spans for position in range(start, stop)]
    found = boundaries(spans, len(body), are_external=rules.are_external)
    return SpanExample(
        ids=[vocabulary.role("cls"), *shown, vocabulary.role("sep")],
        positions=[position + 1 for position in masked],
        labels=[body[position] for position in masked],
        left_boundaries=[left + 1 for left, _ in found],
        right_boundaries=[right + 1 for _, right in found],
    )


def word_starts(documents: Documents, vocabulary: Vocabulary) -> Sequence[int]:
    """For each id of the text, 1 where a word starts."""
    if documents.word_starts is not None:
        found: Sequence[int] = documents.word_starts
        return found
    assert vocabulary.continues_word is not None
    return [1 - vocabulary.continues_word[token] for token in documents.ids]
