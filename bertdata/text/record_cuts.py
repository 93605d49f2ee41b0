"""Cuts between parts of records: a part holds as many whole documents, in their order, as fit into it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class DocumentRun(NamedTuple):
    """Consecutive documents of a piece that stand in one part, by their numbers: start up to stop."""

    part: int
    start: int
    stop: int


class PartCuts:
    """Deals documents out to parts, piece by piece. part: the number of the one that is being filled."""

    def __init__(self, part_bytes: float, part: int = 0) -> None:
        self.part = part
        self._part_bytes = part_bytes
        self._held = 0

    def runs(self, sizes: Sequence[int]) -> Iterator[DocumentRun]:
        """The next piece's documents by part. sizes: bytes of text of each, 0 for one that is left out.

        >>> list(PartCuts(10).runs([4, 6, 0, 3, 20]))
        [DocumentRun(part=0, start=0, stop=2), DocumentRun(part=1, start=3, stop=4), \
DocumentRun(part=2, start=4, stop=5)]
        """
        start = 0
        for document, size in enumerate(sizes):
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
