"""The text and the JSON of a file of labelled data."""

from typing import Any

from bertdata.errors import InputError
from bertdata.io.file_kind import HEAD_BYTES, find_kind, utf8_remedy
from bertdata.io.json_text import parse_json_text


def decode_text(data: bytes, name: str, expected: str) -> str:
    """The file's data as text, without a byte-order mark.

    expected: what the file should be, in words. InputError for a compressed file, a shard or another
    encoding, with what to do, for a binary file, and for a byte that is not UTF-8.
    """
    kind = find_kind(data[:HEAD_BYTES], name, whole=len(data) <= HEAD_BYTES)
    if kind is not None and not kind.name.startswith("JSON"):
        raise InputError(f"{name}: looks like {kind.name}, expected {expected}; {kind.remedy}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if (zero := data.find(0, 0, HEAD_BYTES)) >= 0:
            found = f"is no text: byte 0x00 at offset {zero}"
            raise InputError(f"{name}: {found}, expected {expected}") from None
        raise InputError.not_utf8(name, data, error.start, utf8_remedy(data, name)) from None


def parse_json(text: str, where: str, expected: str) -> Any:
    """The JSON value of a text. InputError where it is none."""
    try:
        return parse_json_text(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}; expected {expected}") from None
