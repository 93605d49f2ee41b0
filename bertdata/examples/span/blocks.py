"""Cuts a text into blocks of whole sentences, each from a single document.

Pure-Python twin of _native/examples/span_blocks.h.
"""

from collections.abc import Iterator

from bertdata.records import Documents

Extent = tuple[int, int]
"""A block or a sentence: the index of its first id in the text, and the index after its last id."""


def cut_text_into_blocks(documents: Documents, longest: int, *, as_original: bool) -> Iterator[Extent]:
    """Yield the blocks of the text, each with as many whole sentences of one document as fit into ``longest``
    ids.

    A sentence that is too long is cut into pieces of ``longest`` ids. Its pieces share no block with another
    sentence.

    as_original: True drops a sentence that is too long, as SpanBERT's program does. If it is the last
        sentence of its document, the block before it is dropped too.
    """
    for sentences in _list_sentences(documents):
        cut = _cut_as_original(sentences, longest) if as_original else _cut_keeping_all(sentences, longest)
        yield from cut


def _list_sentences(documents: Documents) -> Iterator[list[Extent]]:
    """Yield the list of each document's sentences. Empty sentences are left out."""
    sentence = start = 0
    for document_end in documents.document_ends:
        found = []
        for end in documents.sentence_ends[sentence:document_end]:
            if start < end:
                found.append((start, end))
            start = end
        sentence = document_end
        yield found


def _cut_keeping_all(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """Yield the blocks of a document. Together they contain all of its ids."""
    for start, end in _join_sentences(sentences, longest):
        for piece in range(start, end, longest):
            yield piece, min(piece + longest, end)


def _cut_as_original(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """Yield the blocks of a document that SpanBERT's program makes."""
    fitting = [(start, end) for start, end in sentences if end - start <= longest]
    blocks = list(_join_sentences(fitting, longest))
    # SpanBERT's program writes the last block when it handles the last sentence. If that sentence is too
    # long, the block is never written.
    loses_last = fitting and fitting[-1] != sentences[-1]
    yield from blocks[:-1] if loses_last else blocks


def _join_sentences(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """Yield ranges of consecutive sentences, each with as many sentences as span at most ``longest`` ids."""
    if not sentences:
        return
    first, last = sentences[0]
    for start, end in sentences[1:]:
        # The length is measured from the first id to the last. It therefore includes dropped sentences in
        # between.
        if end - first > longest:
            yield first, last
            first = start
        last = end
    yield first, last
