"""fairseq's MMapIndexedDataset: concatenated lines of ids in ``.bin``, and their sizes in ``.idx``.

::

    NAME.bin    the ids of all lines, each with its end token, little-endian, in one integer type
    NAME.idx    "MMIDIDX", two zero bytes; u64 version 1; u8 code of the integer type; u64 number of lines;
                i32 number of ids of each line; i64 byte offset of each line in NAME.bin

This module imports NumPy.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.io import storage
from bertdata.shards.file_view import FileView
from bertdata.shards.protocol import Sink

BIN, INDEX = ".bin", ".idx"
TYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 8: "u2", 9: "u4", 10: "u8"}
"""The integer types of ids by fairseq's code for them in the ``.idx``. Codes 6 and 7 stand for floats."""
SMALL_VOCABULARY = 65_500
"""Size of a vocabulary from which on fairseq stores its ids in 32 bits instead of 16."""

_MAGIC = b"MMIDIDX\0\0"
_VERSION = 1
_HEAD = struct.Struct("<QBQ")
_LINE_BYTES = 12


def make_index_path(path: str) -> str:
    """Return the path of the ``.idx`` file that belongs to this ``.bin`` file."""
    return path.removesuffix(BIN) + INDEX


def choose_id_type(vocabulary_size: int) -> str:
    """Return the integer type in which fairseq stores the ids of a vocabulary of this size: u2 or u4."""
    return "u2" if vocabulary_size < SMALL_VOCABULARY else "u4"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StoredLines:
    """Lines of token ids in memory, in the integer type of their file. Line i is
    ``ids[ends[i-1]:ends[i]]``.
    """

    ids: Array
    ends: Array

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinesFile:
    """An open ``.bin``, from which ids are read when they are needed.

    kind: integer type of the ids, such as u2.
    ends: for each line, the number of ids in the file up to its end.
    """

    file: FileView
    name: str
    kind: str
    ends: Array

    def __len__(self) -> int:
        return len(self.ends)

    def read_pieces(self, most: int) -> Iterator[StoredLines]:
        """Yield the lines in order, at most ``most`` of them at a time.

        ``ends`` counts from the first id that is yielded with it, not from the start of the file.
        """
        for first in range(0, len(self), most):
            start = int(self.ends[first - 1]) if first else 0
            ends = self.ends[first : first + most] - start
            yield StoredLines(ids=self._read_ids(start, int(ends[-1])), ends=ends)

    def read_all(self) -> StoredLines:
        """Read all lines into memory and return them."""
        return StoredLines(ids=self._read_ids(0, int(self.ends[-1]) if len(self) else 0), ends=self.ends)

    def _read_ids(self, start: int, count: int) -> Array:
        """Read ``count`` ids, from the id with the index ``start`` on.

        Raises ShardError if the file ends too early.
        """
        item = np.dtype(f"<{self.kind}")
        ids = np.empty(count, item)
        self.file.seek(start * item.itemsize)
        found = self.file.readinto(ids)
        if found != ids.nbytes:
            raise ShardError(
                f"{self.name}: ends at byte {start * item.itemsize + found}, expected {ids.nbytes - found} "
                "more: it was cut while it was being read; run the command again when nothing else writes "
                "to it"
            )
        return ids


def read_lines(file: IO[bytes], name: str) -> StoredLines:
    """Read all lines of a ``.bin``.

    Raises ShardError if the file and its ``.idx`` are damaged or do not match.
    """
    return open_lines(file, name).read_all()


def open_lines(file: IO[bytes], name: str) -> LinesFile:
    """Open a ``.bin`` and the ``.idx`` next to it. Raises ShardError if they are damaged or do not match."""
    path = make_index_path(name)
    if not name.endswith(BIN) or not storage.exists(path):
        raise ShardError(f"{name}: {path} is missing, which tells the lines of a .bin of fairseq's")
    kind, sizes, places = _parse_index(storage.read_bytes(path), path)
    view = FileView(file)
    size, item = view.size, np.dtype(f"<{kind}")
    total = int(sizes.sum(dtype=np.int64))
    if total * item.itemsize != size:
        raise ShardError(
            f"{name}: holds {size} bytes, expected {total * item.itemsize}: {path} tells {total} ids of "
            f"{item.itemsize} bytes in {len(sizes)} lines"
        )
    ends = np.cumsum(sizes, dtype=np.int64)
    wrong = places != (ends - sizes) * item.itemsize
    if wrong.any():
        line = int(np.argmax(wrong))
        raise ShardError(
            f"{path}: line {line} begins at byte {places[line]}, expected "
            f"{int(ends[line] - sizes[line]) * item.itemsize}, where the line before it ends"
        )
    return LinesFile(file=view, name=name, kind=kind, ends=ends)


def _parse_index(data: bytes, path: str) -> tuple[str, Array, Array]:
    """Parse the contents of an ``.idx``.

    Returns the integer type, the number of ids in each line, and the byte offset of each line in the
    ``.bin``.
    """
    if not data.startswith(_MAGIC):
        raise ShardError(
            f"{path}: begins with {data[: len(_MAGIC)]!r}, expected {_MAGIC!r}, as fairseq's does"
        )
    if len(data) < len(_MAGIC) + _HEAD.size:
        raise ShardError(f"{path}: holds {len(data)} bytes, expected {len(_MAGIC) + _HEAD.size} or more")
    version, code, count = _HEAD.unpack_from(data, len(_MAGIC))
    if version != _VERSION:
        raise ShardError(f"{path}: its version is {version}, expected {_VERSION}")
    known = ", ".join(map(str, TYPES))
    if code in (6, 7):
        raise ShardError(f"{path}: the type of its ids is {code}, floats; expected one of {known}")
    if code not in TYPES:
        raise ShardError(
            f"{path}: the type of its ids is {code}, a type that is not known; expected one of {known}"
        )
    first = len(_MAGIC) + _HEAD.size
    if len(data) != (due := first + _LINE_BYTES * count):
        raise ShardError(f"{path}: holds {len(data)} bytes, expected {due} for {count} lines")
    sizes = np.frombuffer(data, "<i4", count, first)
    if (sizes < 0).any():
        line = int(np.argmax(sizes < 0))
        raise ShardError(f"{path}: line {line} has {sizes[line]} ids, expected 0 or more")
    return TYPES[code], sizes, np.frombuffer(data, "<i8", count, first + 4 * count)


@dataclass(kw_only=True, slots=True)
class LinesWriter:
    """Writer of lines to a ``.bin``. At the end ``index`` returns the contents of the ``.idx``.

    kind: integer type of the ids, one of TYPES.
    """

    sink: Sink
    kind: str
    _sizes: list[Array] = field(default_factory=list)

    def write(self, ids: Array, ends: Array) -> None:
        """Append lines. Line i is ``ids[ends[i-1]:ends[i]]``, with its end token."""
        self.sink.write(ids.astype(f"<{self.kind}").tobytes())
        self._sizes.append(np.diff(ends.astype(np.int64), prepend=0).astype("<i4"))

    def index(self) -> bytes:
        """Return the contents of the ``.idx`` file for all lines that were written so far."""
        sizes = np.concatenate([np.zeros(0, "<i4"), *self._sizes])
        item = np.dtype(self.kind).itemsize
        places = (np.cumsum(sizes, dtype=np.int64) - sizes) * item
        [code] = [code for code, kind in TYPES.items() if kind == self.kind]
        head = _MAGIC + _HEAD.pack(_VERSION, code, len(sizes))
        return bytes(head + sizes.astype("<i4").tobytes() + places.astype("<i8").tobytes())
