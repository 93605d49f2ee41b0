"""Assign consecutive documents to parts. A new part starts when the next document would not fit."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class DocumentRun(NamedTuple):
    """Consecutive documents of a piece (a group of records) that go into the same part.

    part: number of the part.
    start: index of the first document in the piece.
    stop: index after the last document.
    """

    part: int
    start: int
    stop: int


class PartAssignment:
    """Assignment of documents to parts, computed for one piece (a group of records) after another.

    part: number of the part that is being filled.
    part_bytes: largest size of a part in bytes of text.
    """

    def __init__(self, part_bytes: float, part: int = 0) -> None:
        self.part = part
        self._part_bytes = part_bytes
        self._held = 0

    def assign_documents(self, sizes: Sequence[int]) -> Iterator[DocumentRun]:
        """Assign the documents of the next piece to parts. Yields runs of documents with the same part.

        In the example a part has at most 10 bytes. Documents 0 and 1 go into part 0, document 2 is left out,
        document 3 goes into part 1, and document 4 is alone in part 2, although it is larger than a part:

        >>> [tuple(run) for run in PartAssignment(10).assign_documents([4, 6, 0, 3, 20])]
        [(0, 0, 2), (1, 3, 4), (2, 4, 5)]

        sizes: bytes of text of each document, 0 for a document that is left out.
        """
        start = 0
        for document, size in enumerate(sizes):
            # A part that holds nothing yet takes any document, even one that is larger than a part.
            is_full = bool(size and self._held) and self._held + size > self._part_bytes
            if is_full or not size:
                if start < document:
                    yield DocumentRun(self.part, start, document)
                start = document if size else document + 1
            if is_full:
                self.part, self._held = self.part + 1, 0
            self._held += size
        if start < len(sizes):
            yield DocumentRun(self.part, start, len(sizes))
