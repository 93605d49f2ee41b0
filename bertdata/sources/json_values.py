"""Read a JSON file whose records are the items of a list, or objects that span several lines, as a stream.

A file with a list of two records, and the beginning of a file with one object after another::

    [{"text": "One."}, {"text": "Two."}]

    {
      "text": "Three."
    }

This module only finds where each value starts and ends. The workers parse the values. A file must be read
from its start, because a bracket inside a string looks like any other bracket.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from bertdata.errors import InputError
from bertdata.io.file_kind import BOM, HEAD_BYTES
from bertdata.sources.encoding import open_decoded
from bertdata.sources.fields import TextFields
from bertdata.sources.json_fields import find_text_fields, find_text_fields_in_head, refuse_inner_records
from bertdata.sources.json_lines import parse_line, parse_record
from bertdata.sources.piece import PIECE_BYTES, Found, ReadPiece
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import RecordSettings

_VALUES_LOOKED_AT = 100
_BLANKS = re.compile(rb"[ \t\n\r]*")
_MARK = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_BEHIND_WORD = re.compile(rb"[\s,\]]")


@dataclass(frozen=True, slots=True)
class ValuesPiece:
    """Piece of a JSON file: the source text of consecutive values.

    values: source text of each value, or None for a value that is too long.
    """

    values: list[bytes | None]
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        fault = f"a value of more than {settings.raw_bytes} bytes"
        found: Found = [
            BadRecord(number, "too_long", fault) if value is None else parse_record(number, value, settings)
            for number, value in enumerate(self.values, 1)
        ]
        return ReadPiece(found, len(found))


def split_json_values(path: str, settings: RecordSettings) -> Iterator[ValuesPiece]:
    """Divide a JSON file into pieces, that is, groups of consecutive whole values.

    Raises InputError if the file is cut short, or if something other than JSON stands between its values.
    """
    values: list[bytes | None] = []
    held = before = 0
    with open_decoded(path, settings.encoding) as file:
        try:
            for value in read_json_values(file, settings.raw_bytes):
                values.append(value)
                held += len(value or b"")
                if held >= PIECE_BYTES:
                    yield ValuesPiece(values, held)
                    before += len(values)
                    values, held = [], 0
        except ValueError as error:
            place = f"behind record {before + len(values)}"
            raise InputError(f"{path}: {place}: is no JSON: {error}; fetch or make it again") from None
    yield ValuesPiece(values, held)


def find_json_value_fields(path: str, settings: RecordSettings) -> TextFields | None:
    """Return the names of the text fields in a JSON file, or None if its values are bare strings.

    Raises InputError if no field is named and the file is a single object that contains a list of objects:
    the items of that list are probably the records.
    """
    with open_decoded(path, settings.encoding) as file:
        head = file.read(HEAD_BYTES)
    values = []
    try:
        for value in islice(read_json_values(io.BytesIO(head), len(head)), _VALUES_LOOKED_AT):
            values.append(parse_line(value or b""))
    except ValueError:  # the head ends in the middle of a value
        pass
    if values and all(isinstance(value, str) for value in values):
        return None
    objects = [value for value in values if isinstance(value, dict)]
    is_list = head.removeprefix(BOM).lstrip()[:1] == b"["
    if settings.text_field is None and not is_list and len(objects) < 2:
        refuse_inner_records(head, path)
    return find_text_fields(objects) if objects else find_text_fields_in_head(head)


def read_json_values(file: BinaryIO, longest: int) -> Iterator[bytes | None]:
    """Yield the source text of each item of a list, or of each value in a file of several values.

    Yields None in place of a value that is too long. Raises ValueError with an explanation if something
    unexpected stands between values, or if a list or a value is not closed.

    longest: longest accepted value in bytes.
    """
    data, at = file.read(PIECE_BYTES).removeprefix(BOM), 0
    is_list = False
    # State between values: may a value start here, and may the list end here?
    # [            may_begin, may_end     (an empty list is allowed)
    # [1           may_end                (a comma or the end must follow)
    # [1,          may_begin              (a value must follow)
    may_begin, may_end = True, False
    while True:
        found = _BLANKS.match(data, at)
        at = found.end() if found else at
        if at == len(data):
            data, at = file.read(PIECE_BYTES), 0
            if not data:
                break
            continue
        mark = data[at : at + 1]
        if is_list and mark == b"]" and may_end:
            is_list, may_begin, may_end, at = False, True, False, at + 1
        elif is_list and mark == b"," and not may_begin:
            may_begin, may_end, at = True, False, at + 1
        elif not is_list and mark == b"[":
            is_list, may_begin, may_end, at = True, True, True, at + 1
        elif may_begin and mark not in b",]}:":
            value, data, at = _read_value(file, data, at, longest)
            yield value
            may_begin, may_end = not is_list, is_list
        else:
            raise ValueError(f"{mark.decode(errors='replace')!r} stands where no value ends or begins")
    if is_list:
        raise ValueError("its list is not closed")


def _read_value(file: BinaryIO, data: bytes, at: int, longest: int) -> tuple[bytes | None, bytes, int]:
    """Read the value that starts at position ``at`` of the block ``data``, reading more blocks as needed.

    Returns three things: the value (None if it is too long), the block that was read last, and the position
    in that block after the value.
    """
    # Collect the value over as many blocks as it spans. Once it is too long, its bytes are dropped and only
    # its end is searched for, so memory stays bounded.
    end = _BareValueEnd() if data[at : at + 1] not in b'{["' else _ValueEnd()
    parts: list[bytes] = []
    held = 0
    while (stop := end.find(data, at)) < 0:
        held += len(data) - at
        parts = [*parts, data[at:]] if held <= longest else []
        data, at = file.read(PIECE_BYTES), 0
        if not data:
            if isinstance(end, _BareValueEnd):
                return b"".join(parts), b"", 0
            raise ValueError("its last value is cut short")
    held += stop - at
    value = b"".join([*parts, data[at:stop]]) if held <= longest else None
    return value, data, stop


class _BareValueEnd:
    """Search for the end of a value without brackets or quotes: a number, ``true``, ``false`` or ``null``."""

    def find(self, data: bytes, at: int) -> int:
        """Return the position after the value, or -1 if the value may continue in the next block of data.

        at: position in the block from which to search.
        """
        found = _BEHIND_WORD.search(data, at)
        return -1 if found is None else found.start()


class _ValueEnd:
    """Search for the end of an object, list or string, which may span several blocks of data."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    def find(self, data: bytes, at: int) -> int:
        """Return the position after the value, or -1 if it continues in the next block of data.

        at: position in the block from which to search.
        """
        while True:
            if self._is_in_string:
                at = self._find_string_end(data, at)
                if at < 0 or not self._depth:
                    return at
            found = _MARK.search(data, at)
            if found is None:
                return -1
            at, mark = found.end(), found[0]
            if mark == b'"':
                self._is_in_string = True
            elif mark in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return at

    def _find_string_end(self, data: bytes, at: int) -> int:
        """Return the position after a string's closing quote, or -1 if the string continues in the next
        block.
        """
        at += self._is_escaped
        self._is_escaped = False
        while (found := _IN_STRING.search(data, at)) is not None:
            at = found.end()
            if found[0] == b'"':
                self._is_in_string = False
                return at
            at += 1  # skip the escaped character, which may be the first byte of the next block
            self._is_escaped = at > len(data)
        return -1
