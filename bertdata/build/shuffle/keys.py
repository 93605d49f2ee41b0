"""Keys of documents, and the documents of one part in the order of their keys. A shard's seed."""

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
"""Before each document: its key, the number of its sentences, the number of bytes of its ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedDocuments:
    """Documents by key, as bytes that may be cut between any two of them.

    ``records`` holds one record a document: HEADER, the lengths of its sentences (uint32), its token
    ids (uint16 or uint32, as the vocabulary asks), all little-endian, and where the documents tell word
    starts a byte for each id. Record i starts at
    ``starts[i]``, and ``prefixes[i]`` is the first 64 bits of its key; both uint64.
    """

    records: bytes
    starts: Buffer
    prefixes: Buffer
    tokens: Buffer


def sort_documents(documents: Documents, part: str) -> SortedDocuments:
    """The documents of a part, whose file name is part of every document's key."""
    keyed = sorted(zip(document_keys(documents, part), range(documents.documents), strict=True))
    bodies = list(_bodies(documents))
    starts = _word_starts(documents)
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


def document_keys(documents: Documents, part: str) -> list[bytes]:
    """Each document's key: BLAKE2b, 16 bytes, of its content and its place.

    Hashed are the lengths of its sentences and its token ids as SortedDocuments holds them, then the
    part's name in the manifest, a NUL and the document's number in the part, counted from 0 in decimal
    digits.
    The place keeps documents of equal content apart.
    """
    place = part.encode() + b"\0"
    keys = []
    for number, (lengths, ids) in enumerate(_bodies(documents)):
        digest = hashlib.blake2b(lengths, digest_size=KEY_BYTES)
        digest.update(ids)
        digest.update(place + b"%d" % number)
        keys.append(digest.digest())
    return keys


def _bodies(documents: Documents) -> Iterator[tuple[bytes, bytes]]:
    """Of each document, the lengths of its sentences and its ids, as little-endian bytes."""
    lengths = little_endian(
        array("I", map(sub, documents.sentence_ends, chain((0,), documents.sentence_ends)))
    )
    ids = little_endian(documents.ids)
    width = documents.ids.itemsize
    first_sentence = first_id = 0
    for end in documents.document_ends:
        last_id = documents.sentence_ends[end - 1]
        yield bytes(lengths[4 * first_sentence : 4 * end]), bytes(ids[width * first_id : width * last_id])
        first_sentence, first_id = end, last_id


def _word_starts(documents: Documents) -> list[bytes]:
    """Of each document a byte for each of its ids, or nothing where the documents tell no word starts."""
    if documents.word_starts is None:
        return [b""] * documents.documents
    ends = [documents.sentence_ends[end - 1] for end in documents.document_ends]
    return [bytes(documents.word_starts[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


def little_endian(items: Buffer) -> memoryview:
    """The items' bytes, least significant first."""
    if sys.byteorder == "big":
        swapped = array(memoryview(items).format, items)
        swapped.byteswap()
        items = swapped
    return memoryview(items).cast("B")


def from_little_endian(kind: str, data: bytes) -> Buffer:
    """Such bytes as an array of this machine."""
    items = array(kind)
    items.frombytes(data)
    if sys.byteorder == "big":
        items.byteswap()
    return items


def shard_seed(seed: int, number: int) -> int:
    """The seed of a shard's random stream: the first 64 bits of BLAKE2b of ``"<seed>/<number>"``."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest(), "big")
