"""Divide files of JSON lines into pieces of whole lines.

A plain file in UTF-8 is divided into byte ranges, which workers read by themselves. A line belongs to the
range in which it starts. A file that is compressed or in another encoding must be read from its start, so its
pieces contain the lines themselves.

A line longer than ``raw_bytes`` is cut one byte after this limit. So memory stays bounded, and the reader
still sees that the line is too long.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from bertdata.io import storage
from bertdata.io.file_kind import BOM, HEAD_BYTES
from bertdata.sources.encoding import UTF_8, open_decoded
from bertdata.sources.fields import TextFields
from bertdata.sources.json_fields import find_text_fields, find_text_fields_in_head, refuse_inner_records
from bertdata.sources.json_lines import parse_line, read_line_records
from bertdata.sources.piece import PIECE_BYTES, ReadPiece
from bertdata.sources.settings import RecordSettings
from bertdata.sources.unpacking import detect_packing

_LINES_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class RangePiece:
    """Piece of a plain file: the JSON lines that start in the bytes ``start`` to ``end``."""

    path: str
    start: int
    end: int

    @property
    def bytes(self) -> int:
        return self.end - self.start

    def read(self, settings: RecordSettings) -> ReadPiece:
        with storage.open_input(self.path) as file:
            return _read_lines(_read_range_lines(file, self.start, self.end, settings.raw_bytes), settings)


@dataclass(frozen=True, slots=True)
class LinesPiece:
    """Piece of a file that is compressed or in another encoding: JSON lines that are already read."""

    data: bytes
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        return _read_lines(self.data, settings)


def split_json_lines(path: str, settings: RecordSettings) -> Iterator[RangePiece | LinesPiece]:
    """Divide a file of JSON lines into pieces, that is, groups of consecutive whole lines."""
    with storage.open_input(path) as file:
        packed = detect_packing(file.read(6)) is not None
    if packed or settings.encoding != UTF_8:
        for data in read_line_blocks(path, settings.raw_bytes, settings.encoding):
            yield LinesPiece(data, len(data))
        return
    size = storage.read_size(path)
    for start in range(0, size, PIECE_BYTES):
        yield RangePiece(path, start, min(start + PIECE_BYTES, size))


def find_json_line_fields(path: str, settings: RecordSettings) -> TextFields:
    """Return the names of the text fields in a file of JSON lines, from its first lines.

    Raises InputError if no field is named and the file is a single object that contains a list of objects.
    """
    with open_decoded(path, settings.encoding) as file:
        head = file.read(HEAD_BYTES)
    objects = list(_parse_first_objects(head))
    is_single = len(objects) < 2 and head.strip().count(b"\n") == 0
    if settings.text_field is None and is_single:
        refuse_inner_records(head, path)
    return find_text_fields(objects) if objects else find_text_fields_in_head(head)


def _parse_first_objects(head: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects in the first lines of a file. The last line may be cut, and is then left out."""
    for line in head.removeprefix(BOM).split(b"\n")[:_LINES_LOOKED_AT]:
        try:
            value = parse_line(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _read_lines(data: bytes, settings: RecordSettings) -> ReadPiece:
    """Return the records in these lines."""
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return ReadPiece(list(read_line_records(data, settings)), lines)


def _read_range_lines(file: BinaryIO, start: int, end: int, raw_bytes: int) -> bytes:
    """Read the whole lines that start in a byte range. The last line may end after the range.

    raw_bytes: most bytes to read after the range. A longer last line is cut.
    """
    # Read from one byte before the range. If this byte is a line end, a line starts exactly at ``start``. For
    # example, split "ab\ncd\nef" at byte 4. The range [0, 4) has the lines "ab" and "cd", of which the latter
    # ends after byte 4. The range [4, 8) has the line "ef".
    before = 1 if start else 0
    file.seek(start - before)
    data = file.read(end - start + before)
    if before:
        first = data.find(b"\n") + 1
        if not first or first == len(data):
            return b""
        data = data[first:]
    else:
        data = data.removeprefix(BOM)
    return data if data.endswith(b"\n") else data + _read_line_rest(file, raw_bytes)


def _read_line_rest(file: BinaryIO, raw_bytes: int) -> bytes:
    """Read up to the end of the current line, but at most ``raw_bytes`` bytes and one more."""
    return file.readline(raw_bytes + 1)


def read_line_blocks(path: str, raw_bytes: int, encoding: str = UTF_8) -> Iterator[bytes]:
    """Yield the unpacked content of a file in blocks of whole lines of UTF-8, without its byte-order mark.

    A line that is longer than ``raw_bytes`` is cut.
    """
    with open_decoded(path, encoding) as file:
        data = file.read(PIECE_BYTES).removeprefix(BOM)
        while data:
            if not data.endswith(b"\n"):
                rest = _read_line_rest(file, raw_bytes)
                data += rest
                if rest and not rest.endswith(b"\n"):
                    data += _skip_line(file)
            yield data
            data = file.read(PIECE_BYTES)


def _skip_line(file: BinaryIO) -> bytes:
    """Skip the rest of a line that is too long, and return its line end."""
    while rest := file.readline(1 << 20):
        if rest.endswith(b"\n"):
            return b"\n"
    return b""
