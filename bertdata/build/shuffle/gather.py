"""The documents of one shard, gathered from the sorted documents of all parts."""

from array import array
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter

from bertdata.build.shuffle.keys import HEADER, from_little_endian
from bertdata.records import Documents


def gather_documents(blocks: Iterable[bytes], *, wide: bool, has_word_starts: bool = False) -> Documents:
    """All documents of the blocks, in the order of their keys.

    A block is any run of whole records of SortedDocuments; ids are 32 bits wide if ``wide``, else 16.
    has_word_starts: the records hold them.
    """
    width = (4 if wide else 2) if has_word_starts else None
    found = sorted((record for block in blocks for record in _records(block, width)), key=itemgetter(0))
    ids = from_little_endian("I" if wide else "H", b"".join(ids for _, _, ids, _ in found))
    lengths = from_little_endian("I", b"".join(lengths for _, lengths, _, _ in found))
    return Documents(
        ids=ids,
        sentence_ends=array("I", accumulate(lengths)),
        document_ends=array("I", accumulate(len(lengths) // 4 for _, lengths, _, _ in found)),
        word_starts=b"".join(starts for *_, starts in found) if has_word_starts else None,
    )


def _records(block: bytes, width: int | None) -> Iterable[tuple[bytes, memoryview, memoryview, memoryview]]:
    """Key, sentence lengths, ids and word starts of each record. width: bytes of an id with a word start."""
    view, start = memoryview(block), 0
    while start < len(block):
        key, sentences, id_bytes = HEADER.unpack_from(block, start)
        lengths = start + HEADER.size
        ids = lengths + 4 * sentences
        starts = ids + id_bytes
        start = starts + (id_bytes // width if width else 0)
        yield key, view[lengths:ids], view[ids:starts], view[starts:start]
