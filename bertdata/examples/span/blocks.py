"""Text to blocks of whole sentences of one document.

Twin of _native/examples/span_blocks.h.
"""

from collections.abc import Iterator

from bertdata.records import Documents

Extent = tuple[int, int]
"""A block or a sentence: its first id in the text, and the first behind it."""


def cut_bodies(documents: Documents, longest: int, *, as_original: bool) -> Iterator[Extent]:
    """The blocks of the text, each as many whole sentences of one document as fit into ``longest`` ids.

    A sentence that is too long is cut every ``longest`` ids, and no other stands in its blocks. as_original:
    it is dropped; where it is a document's last, the block that is open before it is dropped with it.
    """
    for sentences in _sentences(documents):
        cut = _as_original(sentences, longest) if as_original else _all(sentences, longest)
        yield from cut


def _sentences(documents: Documents) -> Iterator[list[Extent]]:
    """The sentences that have ids, by document."""
    sentence = start = 0
    for document_end in documents.document_ends:
        found = []
        for end in documents.sentence_ends[sentence:document_end]:
            if start < end:
                found.append((start, end))
            start = end
        sentence = document_end
        yield found


def _all(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """Every id of a document in one block."""
    for start, end in _joined(sentences, longest):
        for piece in range(start, end, longest):
            yield piece, min(piece + longest, end)


def _as_original(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """The blocks of a document as SpanBERT's program cuts it."""
    fitting = [(start, end) for start, end in sentences if end - start <= longest]
    blocks = list(_joined(fitting, longest))
    loses_last = fitting and fitting[-1] != sentences[-1]
    yield from blocks[:-1] if loses_last else blocks


def _joined(sentences: list[Extent], longest: int) -> Iterator[Extent]:
    """Neighbouring sentences while their first and last id are less than ``longest`` apart."""
    if not sentences:
        return
    first, last = sentences[0]
    for start, end in sentences[1:]:
        if end - first > longest:
            yield first, last
            first = start
        last = end
    yield first, last
