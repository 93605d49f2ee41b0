"""The documents of one shard, gathered from the sorted documents of all parts."""

import sys
from array import array
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter

from bertdata.build.shuffle.keys import HEADER
from bertdata.records import Buffer, Documents


def gather_documents(blocks: Iterable[bytes], *, wide: bool) -> Documents:
    """All documents of the blocks, in the order of their keys.

    A block is any run of whole records of SortedDocuments; ids are 32 bits wide if ``wide``, else 16.
    """
    found = sorted((record for block in blocks for record in _records(block)), key=itemgetter(0))
    ids = _items("I" if wide else "H", b"".join(ids for _, _, ids in found))
    lengths = _items("I", b"".join(lengths for _, lengths, _ in found))
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


def _items(kind: str, data: bytes) -> Buffer:
    """Little-endian bytes as an array of this machine."""
    items = array(kind)
    items.frombytes(data)
    if sys.byteorder == "big":
        items.byteswap()
    return items
