"""Collection of the documents of one shard from the sorted documents of all parts."""

from array import array
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter

from bertdata.build.shuffle.keys import HEADER, read_little_endian
from bertdata.records import Documents


def gather_documents(blocks: Iterable[bytes], *, wide: bool, has_word_starts: bool = False) -> Documents:
    """Return the documents in the given blocks, in the order of their keys.

    blocks: bytes that consist of whole records, in the format that SortedDocuments describes.
    wide: True if token ids have 32 bits, False if they have 16.
    has_word_starts: True if the records contain word starts.
    """
    width = (4 if wide else 2) if has_word_starts else None
    # Each key occurs only once, so sorting by key gives the same order of documents for every order of the
    # blocks.
    found = sorted((record for block in blocks for record in _split_records(block, width)), key=itemgetter(0))
    ids = read_little_endian("I" if wide else "H", b"".join(ids for _, _, ids, _ in found))
    lengths = read_little_endian("I", b"".join(lengths for _, lengths, _, _ in found))
    return Documents(
        ids=ids,
        sentence_ends=array("I", accumulate(lengths)),
        document_ends=array("I", accumulate(len(lengths) // 4 for _, lengths, _, _ in found)),
        word_starts=b"".join(starts for *_, starts in found) if has_word_starts else None,
    )


def _split_records(
    block: bytes, width: int | None
) -> Iterable[tuple[bytes, memoryview, memoryview, memoryview]]:
    """Yield the key, the sentence lengths, the ids and the word starts of each record.

    width: number of bytes of an id if the records contain word starts. None if they do not.
    """
    view, start = memoryview(block), 0
    while start < len(block):
        key, sentences, id_bytes = HEADER.unpack_from(block, start)
        lengths = start + HEADER.size
        ids = lengths + 4 * sentences
        starts = ids + id_bytes
        start = starts + (id_bytes // width if width else 0)
        yield key, view[lengths:ids], view[ids:starts], view[starts:start]
