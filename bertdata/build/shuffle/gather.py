"""The documents of one shard, gathered from the sorted documents of all parts."""

from array import array
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter

from bertdata.build.shuffle.keys import HEADER, from_little_endian
from bertdata.records import Documents


def gather_documents(blocks: Iterable[bytes], *, wide: bool) -> Documents:
    """All documents of the blocks, in the order of their keys.

    A block is any run of whole records of SortedDocuments; ids are 32 bits wide if ``wide``, else 16.
    """
    found = sorted((record for block in blocks for record in _records(block)), key=itemgetter(0))
    ids = from_little_endian("I" if wide else "H", b"".join(ids for _, _, ids in found))
    lengths = from_little_endian("I", b"".join(lengths for _, lengths, _ in found))
    return Documents(
        ids=ids,
        sentence_ends=array("I", accumulate(lengths)),
        document_ends=array("I", accumulate(len(lengths) // 4 for _, lengths, _ in found)),
    )


def _records(block: bytes) -> Iterable[tuple[bytes, memoryview, memoryview]]:
    """Key, sentence lengths and ids of each record."""
    view, start = memoryview(block), 0
    while start < len(block):
        key, sentences, id_bytes = HEADER.unpack_from(block, start)
        lengths = start + HEADER.size
        ids = lengths + 4 * sentences
        start = ids + id_bytes
        yield key, view[lengths:ids], view[ids:start]
