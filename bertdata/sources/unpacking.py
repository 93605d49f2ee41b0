"""Compressed files read as what they hold: gzip, bzip2, xz and zstd, told by their first bytes.

A file may hold several members, one after another. Memory is bounded, however much a few bytes unpack to.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from bertdata.errors import InputError, MissingExtraError, install_extra
from bertdata.io import storage
from bertdata.io.spooled_file import SpooledFile

BLOCK_BYTES = 1 << 20
_MEMORY_BYTES = 1 << 26
"""Bytes of an unpacked file that are held in memory; of a larger one on disk."""

_SIGNATURES = {
    "gzip": (b"\x1f\x8b\x08", b"\xff\xff\xff"),
    "bzip2": (b"BZh", b"\xff\xff\xff"),
    "xz": (b"\xfd7zXZ\x00", b"\xff" * 6),
    "zstd": (b"\x28\xb5\x2f\xfd", b"\xff" * 4),
    "skippable zstd": (b"\x50\x2a\x4d\x18", b"\xf0\xff\xff\xff"),
}
ENDINGS = (".gz", ".zst", ".bz2", ".xz")
"""Endings of the names of compressed files."""

_ZSTD_BYTES = 1 << 10
"""Bytes given to zstd at once: its blocks of 128 KiB take three bytes or more, and it gives all they hold."""

_BzipOrXz = bz2.BZ2Decompressor | lzma.LZMADecompressor


def packing_of(head: bytes) -> str | None:
    """The compression of a file that begins with these bytes. None for a file that is not compressed."""
    for name, (signature, mask) in _SIGNATURES.items():
        if len(head) >= len(mask) and bytes(a & b for a, b in zip(head, mask, strict=False)) == signature:
            return "zstd" if name.endswith("zstd") else name
    return None


@contextmanager
def open_unpacked(path: str) -> Iterator[BinaryIO]:
    """The file, or what it holds where it is compressed, for reading from its begin to its end.

    InputError, from reading, for data that are damaged or cut short.
    """
    with storage.open_input(path) as file:
        packing = packing_of(file.read(6))
        file.seek(0)
        if packing is None:
            yield file
            return
        with io.BufferedReader(_Blocks(_unpack(file, packing, path)), BLOCK_BYTES) as reader:
            yield cast(BinaryIO, reader)


def unpacked_blocks(file: BinaryIO, path: str) -> Iterator[bytes]:
    """The blocks of what a compressed file holds. InputError for data that are damaged or cut short."""
    packing = packing_of(file.read(6))
    file.seek(0)
    assert packing is not None
    return _unpack(file, packing, path)


@contextmanager
def open_seekable(path: str) -> Iterator[BinaryIO]:
    """The file for reading in any order. What a compressed one holds is unpacked into a nameless file."""
    with storage.open_input(path) as plain:
        if packing_of(plain.read(6)) is None:
            plain.seek(0)
            yield plain
            return
    spool = SpooledFile(_MEMORY_BYTES)
    try:
        with open_unpacked(path) as unpacked:
            while block := unpacked.read(BLOCK_BYTES):
                spool.write(block)
        yield spool.rewind()
    finally:
        spool.close()


class _Blocks(io.RawIOBase):
    """A file made of blocks that come one after another."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _unpack(file: BinaryIO, packing: str, path: str) -> Iterator[bytes]:
    """The unpacked blocks of all members."""
    faults: tuple[type[Exception], ...] = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)
    if packing == "zstd":
        faults = (*faults, _zstandard(path).ZstdError)
    try:
        yield from _members(file, packing, path)
    except faults as error:
        raise InputError(f"{path}: is damaged {packing} data: {error}; fetch or make it again") from None


def _members(file: BinaryIO, packing: str, path: str) -> Iterator[bytes]:
    unpack = {"gzip": _unpack_gzip, "zstd": _unpack_zstd}.get(packing, _unpack_member)
    data = file.read(BLOCK_BYTES)
    while data:
        if packing_of(data[:6].ljust(6, b"\0")) != packing:
            if data.strip(b"\0") == b"" and packing in ("gzip", "xz"):  # padding of archives on tape
                data = file.read(BLOCK_BYTES)
                continue
            raise ValueError("other bytes stand behind its end")
        data = yield from unpack(file, packing, path, data)
        if len(data) < 6:
            data += file.read(BLOCK_BYTES)


def _more(file: BinaryIO, size: int = BLOCK_BYTES) -> bytes:
    data = file.read(size)
    if not data:
        raise EOFError("it is cut short")
    return data


def _unpack_gzip(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """One member. Returns the bytes behind it."""
    unpacker = zlib.decompressobj(31)
    while True:
        yield unpacker.decompress(data, BLOCK_BYTES)
        if unpacker.eof:
            return unpacker.unused_data
        data = unpacker.unconsumed_tail or _more(file)


def _unpack_member(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """One member of bzip2 or xz. Returns the bytes behind it."""
    new: Callable[[], _BzipOrXz] = bz2.BZ2Decompressor if packing == "bzip2" else lzma.LZMADecompressor
    unpacker = new()
    while True:
        yield unpacker.decompress(data, BLOCK_BYTES)
        if unpacker.eof:
            return unpacker.unused_data
        data = _more(file) if unpacker.needs_input else b""


def _unpack_zstd(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """One frame. Returns the bytes behind it."""
    unpacker, start = _zstandard(path).ZstdDecompressor().decompressobj(), 0
    if data[:4] != _SIGNATURES["zstd"][0]:
        return (yield from _pass_skippable(file, data))
    while True:
        yield unpacker.decompress(data[start : start + _ZSTD_BYTES])
        start += _ZSTD_BYTES
        if unpacker.eof:
            return unpacker.unused_data + data[start:]
        if start >= len(data):
            data, start = _more(file), 0


def _pass_skippable(file: BinaryIO, data: bytes) -> Any:
    """Pass over a frame of zstd that holds no data, as pzstd writes. Returns the bytes behind it."""
    while len(data) < 8:
        data += _more(file)
    left = 8 + int.from_bytes(data[4:8], "little")
    while left > len(data):
        left -= len(data)
        data = _more(file)
    yield b""
    return data[left:]


def _zstandard(path: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError(
            f"{path}: zstd data need the package zstandard: {install_extra('zstd')}"
        ) from None
    return zstandard
