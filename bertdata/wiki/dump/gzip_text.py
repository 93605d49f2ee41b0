"""Decompresses gzip files. A gzip file consists of one or more members, which are compressed streams."""

import zlib
from collections.abc import Generator, Iterator
from typing import BinaryIO

from bertdata.errors import InputError

_MAGIC = b"\x1f\x8b"
_READ_BYTES = 1 << 20


def read_gzip(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    """Decompress a gzip file. Yields each piece of text with the number of bytes of the file read so far.

    As in the program ``gzip``, other bytes after the last member, such as a line end or zeros, are skipped.

    name: path of the file, for error messages.

    Raises InputError for truncated or damaged data.
    """
    try:
        data = file.read(_READ_BYTES)
        while data.startswith(_MAGIC):
            data = yield from _read_member(file, data)
            data = _find_next_member(file, data)
    except (EOFError, zlib.error) as error:
        raise InputError(f"{name}: truncated or damaged gzip data ({error}); download it again") from None


def _read_member(file: BinaryIO, data: bytes) -> Generator[tuple[bytes, int], None, bytes]:
    """Decompress a member of a gzip file, and yield its text.

    data: first bytes of the member, which have already been read.

    Returns the bytes after the member that have already been read.
    """
    member = zlib.decompressobj(31)
    while True:
        text = member.decompress(data, _READ_BYTES)
        if text:
            yield text, file.tell()
        if member.eof:
            return member.unused_data
        data = member.unconsumed_tail or file.read(_READ_BYTES)
        if not data and not text:
            raise EOFError("it ends inside a member")


def _find_next_member(file: BinaryIO, data: bytes) -> bytes:
    """Skip zeros, and return the first bytes of the next member. Returns no bytes at the end of the file.

    data: bytes after the last member that have already been read.
    """
    while len(data := data.lstrip(b"\0")) < len(_MAGIC):
        more = file.read(_READ_BYTES)
        if not more:
            break
        data += more
    return data
