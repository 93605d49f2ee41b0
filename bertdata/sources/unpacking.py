"""Open files and unpack them if they are compressed (gzip, bzip2, xz, zstd). The first bytes show the
compression.

A file may consist of several compressed members, one after another. Memory stays bounded even for data that
expand enormously.
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
"""Unpacked files up to this many bytes stay in memory. Larger files go to disk."""

_SIGNATURES = {
    "gzip": (b"\x1f\x8b\x08", b"\xff\xff\xff"),
    "bzip2": (b"BZh", b"\xff\xff\xff"),
    "xz": (b"\xfd7zXZ\x00", b"\xff" * 6),
    "zstd": (b"\x28\xb5\x2f\xfd", b"\xff" * 4),
    "skippable zstd": (b"\x50\x2a\x4d\x18", b"\xf0\xff\xff\xff"),
}
ENDINGS = (".gz", ".zst", ".bz2", ".xz")
"""File name endings of compressed files."""

_ZSTD_BYTES = 1 << 10
"""Number of compressed bytes that are passed to zstd in a single call.

The zstandard package returns everything that these bytes unpack to. A block of zstd takes at least 3 bytes
and unpacks to at most 128 KiB, so with few bytes the result stays small.
"""

_BzipOrXz = bz2.BZ2Decompressor | lzma.LZMADecompressor


def detect_packing(head: bytes) -> str | None:
    """Return the compression of a file that starts with these bytes, or None if it is not compressed."""
    for name, (signature, mask) in _SIGNATURES.items():
        if len(head) >= len(mask) and bytes(a & b for a, b in zip(head, mask, strict=False)) == signature:
            return "zstd" if name.endswith("zstd") else name
    return None


@contextmanager
def open_unpacked(path: str) -> Iterator[BinaryIO]:
    """Open the file for reading from start to end, unpacked if it is compressed.

    Reading raises InputError if the compressed data are damaged or cut short.
    """
    with storage.open_input(path) as file:
        packing = detect_packing(file.read(6))
        file.seek(0)
        if packing is None:
            yield file
            return
        with io.BufferedReader(BlockFile(_unpack(file, packing, path)), BLOCK_BYTES) as reader:
            yield cast(BinaryIO, reader)


def unpack_blocks(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Unpack a compressed file, and return an iterator over blocks of its content.

    Iterating raises InputError if the data are damaged or cut short.

    path: path of the file, for errors.
    """
    packing = detect_packing(file.read(6))
    file.seek(0)
    assert packing is not None
    return _unpack(file, packing, path)


@contextmanager
def open_seekable(path: str) -> Iterator[BinaryIO]:
    """Open the file for reading in any order. A compressed file is unpacked into a temporary file first."""
    with storage.open_input(path) as plain:
        if detect_packing(plain.read(6)) is None:
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


class BlockFile(io.RawIOBase):
    """File object that reads from an iterator of byte blocks."""

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
    """Yield the unpacked blocks of a file. Raises InputError if the data are damaged."""
    faults: tuple[type[Exception], ...] = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)
    if packing == "zstd":
        faults = (*faults, _import_zstandard(path).ZstdError)
    try:
        yield from _unpack_members(file, packing, path)
    except faults as error:
        raise InputError(f"{path}: is damaged {packing} data: {error}; fetch or make it again") from None


def _unpack_members(file: BinaryIO, packing: str, path: str) -> Iterator[bytes]:
    """Yield the unpacked blocks of a file's compressed members (streams), one member after the other."""
    unpack = {"gzip": _unpack_gzip, "zstd": _unpack_zstd}.get(packing, _unpack_member)
    data = file.read(BLOCK_BYTES)
    while data:
        if detect_packing(data[:6].ljust(6, b"\0")) != packing:
            # NUL bytes at the end are not another member: tape archives are padded with them.
            if data.strip(b"\0") == b"" and packing in ("gzip", "xz"):
                data = file.read(BLOCK_BYTES)
                continue
            raise ValueError("other bytes stand behind its end")
        data = yield from unpack(file, packing, path, data)
        if len(data) < 6:  # too short to recognise the next member
            data += file.read(BLOCK_BYTES)


def _read_more(file: BinaryIO, size: int = BLOCK_BYTES) -> bytes:
    """Read the next block of the file. Raises EOFError if the file has ended."""
    data = file.read(size)
    if not data:
        raise EOFError("it is cut short")
    return data


def _unpack_gzip(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """Yield the blocks of one gzip member, and return the bytes after it."""
    unpacker = zlib.decompressobj(31)
    while True:
        yield unpacker.decompress(data, BLOCK_BYTES)
        if unpacker.eof:
            return unpacker.unused_data
        data = unpacker.unconsumed_tail or _read_more(file)


def _unpack_member(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """Yield the blocks of one bzip2 or xz member, and return the bytes after it."""
    new: Callable[[], _BzipOrXz] = bz2.BZ2Decompressor if packing == "bzip2" else lzma.LZMADecompressor
    unpacker = new()
    while True:
        yield unpacker.decompress(data, BLOCK_BYTES)
        if unpacker.eof:
            return unpacker.unused_data
        data = _read_more(file) if unpacker.needs_input else b""


def _unpack_zstd(file: BinaryIO, packing: str, path: str, data: bytes) -> Any:
    """Yield the blocks of one zstd frame, and return the bytes after it."""
    unpacker, start = _import_zstandard(path).ZstdDecompressor().decompressobj(), 0
    if data[:4] != _SIGNATURES["zstd"][0]:
        return (yield from _skip_empty_frame(file, data))
    # zlib, bz2 and lzma take a limit for the size of their output. The zstandard package does not, so its
    # input is passed in small amounts instead.
    while True:
        yield unpacker.decompress(data[start : start + _ZSTD_BYTES])
        start += _ZSTD_BYTES
        if unpacker.eof:
            return unpacker.unused_data + data[start:]
        if start >= len(data):
            data, start = _read_more(file), 0


def _skip_empty_frame(file: BinaryIO, data: bytes) -> Any:
    """Skip a zstd frame without data, as pzstd writes it, and return the bytes after it."""
    while len(data) < 8:
        data += _read_more(file)
    left = 8 + int.from_bytes(data[4:8], "little")
    while left > len(data):
        left -= len(data)
        data = _read_more(file)
    yield b""
    return data[left:]


def _import_zstandard(path: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError(
            f"{path}: zstd data need the package zstandard: {install_extra('zstd')}"
        ) from None
    return zstandard
