"""A file of labelled data: its bytes, its text and its JSON."""

from typing import Any, NamedTuple

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_check import md5_of
from bertdata.io.file_kind import HEAD_BYTES, find_kind, utf8_remedy
from bertdata.io.json_text import parse_json_text


class DataFile(NamedTuple):
    """A file with its bytes."""

    path: str
    data: bytes

    @property
    def name(self) -> str:
        return storage.base_name(self.path)

    @property
    def md5(self) -> str:
        return md5_of(self.data)

    def text(self, expected: str) -> str:
        """The file as text, without a byte-order mark.

        expected: what the file should be, in words. InputError for a compressed file, a shard or another
        encoding, with what to do, for a binary file, and for a byte that is not UTF-8.
        """
        path, data = self
        kind = find_kind(data[:HEAD_BYTES], path, whole=len(data) <= HEAD_BYTES)
        if kind is not None and not kind.name.startswith("JSON"):
            raise InputError(f"{path}: looks like {kind.name}, expected {expected}; {kind.remedy}")
        try:
            return data.decode().removeprefix("\ufeff")  # behind, so that errors count the mark's bytes too
        except UnicodeDecodeError as error:
            if (zero := data.find(0, 0, HEAD_BYTES)) >= 0:
                found = f"is no text: byte 0x00 at offset {zero}"
                raise InputError(f"{path}: {found}, expected {expected}") from None
            raise InputError.not_utf8(path, data, error.start, utf8_remedy(data, path)) from None


def read_file(path: str) -> DataFile:
    """The file at the path."""
    return DataFile(path, storage.read_bytes(path))


def parse_json(text: str, where: str, expected: str, *, any_number: bool = False) -> Any:
    """The JSON value of a text. InputError where it is none. any_number: as of parse_json_text."""
    try:
        return parse_json_text(text, any_number=any_number)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}; expected {expected}") from None
