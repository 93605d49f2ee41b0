"""Keys by which a global shuffle sorts documents, the sorted documents of a part, and the random seed of a
shard.
"""

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import sub

from bertdata.records import Buffer, Documents

KEY_BYTES = 16
HEADER = struct.Struct(f"<{KEY_BYTES}sII")
"""First bytes of a document's record: its key, its number of sentences, and the size of its ids in bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedDocuments:
    """The documents of a part, sorted by key and stored as bytes that can be cut between any two documents.

    records: one record after another, one for each document. A record consists of HEADER, the sentence
        lengths (uint32), the token ids (uint16 or uint32, depending on the vocabulary) and, if the documents
        have word starts, one byte per id. All numbers are little-endian.
    starts: index of the first byte of each record (uint64).
    prefixes: first 64 bits of each document's key (uint64).
    tokens: number of tokens of each document (uint64).
    """

    records: bytes
    starts: Buffer
    prefixes: Buffer
    tokens: Buffer


def sort_documents(documents: Documents, part: str) -> SortedDocuments:
    """Return the documents of a part, sorted by key.

    part: name of the part in the manifest. The keys depend on it.
    """
    keyed = sorted(zip(hash_documents(documents, part), range(documents.documents), strict=True))
    bodies = list(_split_documents(documents))
    starts = _split_word_starts(documents)
    records = [
        HEADER.pack(key, len(bodies[index][0]) // 4, len(bodies[index][1]))
        + b"".join(bodies[index])
        + starts[index]
        for key, index in keyed
    ]
    width = documents.ids.itemsize
    return SortedDocuments(
        records=b"".join(records),
        starts=array("Q", accumulate(map(len, records[:-1]), initial=0)) if records else array("Q"),
        prefixes=array("Q", (int.from_bytes(key[:8], "big") for key, _ in keyed)),
        tokens=array("Q", (len(bodies[index][1]) // width for _, index in keyed)),
    )


def hash_documents(documents: Documents, part: str) -> list[bytes]:
    """Return a 16-byte BLAKE2b hash of each document's content and position, which is the document's key.

    These bytes are hashed: the sentence lengths and the token ids (as SortedDocuments stores them), the
    part's name in the manifest, a NUL byte, and the index of the document in the part (in decimal digits,
    from 0). Because of the position, documents with equal content have different keys.
    """
    place = part.encode() + b"\0"
    keys = []
    for number, (lengths, ids) in enumerate(_split_documents(documents)):
        digest = hashlib.blake2b(lengths, digest_size=KEY_BYTES)
        digest.update(ids)
        digest.update(place + b"%d" % number)
        keys.append(digest.digest())
    return keys


def _split_documents(documents: Documents) -> Iterator[tuple[bytes, bytes]]:
    """Yield the sentence lengths and the ids of each document as little-endian bytes."""
    lengths = convert_to_little_endian(
        array("I", map(sub, documents.sentence_ends, chain((0,), documents.sentence_ends)))
    )
    ids = convert_to_little_endian(documents.ids)
    width = documents.ids.itemsize
    first_sentence = first_id = 0
    for end in documents.document_ends:
        last_id = documents.sentence_ends[end - 1]
        yield bytes(lengths[4 * first_sentence : 4 * end]), bytes(ids[width * first_id : width * last_id])
        first_sentence, first_id = end, last_id


def _split_word_starts(documents: Documents) -> list[bytes]:
    """Return the word starts of each document, one byte per id.

    Each document gets empty bytes if the documents have no word starts.
    """
    if documents.word_starts is None:
        return [b""] * documents.documents
    ends = [documents.sentence_ends[end - 1] for end in documents.document_ends]
    return [bytes(documents.word_starts[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


def convert_to_little_endian(items: Buffer) -> memoryview:
    """Return the bytes of an array of integers in little-endian order."""
    if sys.byteorder == "big":
        swapped = array(memoryview(items).format, items)
        swapped.byteswap()
        items = swapped
    return memoryview(items).cast("B")


def read_little_endian(kind: str, data: bytes) -> Buffer:
    """Return an array of the integers that are stored as little-endian bytes.

    kind: type code of the result, as the module ``array`` defines it.
    """
    items = array(kind)
    items.frombytes(data)
    if sys.byteorder == "big":
        items.byteswap()
    return items


def derive_shard_seed(seed: int, number: int) -> int:
    """Return the random seed of a shard in a global shuffle.

    It is the first 64 bits of the BLAKE2b hash of the text ``<seed>/<number>``.
    """
    return int.from_bytes(hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest(), "big")
