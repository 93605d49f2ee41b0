"""A file of labelled data, with its bytes, text and JSON."""

from typing import Any, NamedTuple

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.file_kind import HEAD_BYTES, find_kind, suggest_utf8_remedy
from bertdata.io.json_text import parse_json_text


class DataFile(NamedTuple):
    """The path and the content of a file with labelled data."""

    path: str
    data: bytes

    @property
    def name(self) -> str:
        return storage.get_base_name(self.path)

    @property
    def md5(self) -> str:
        return compute_md5(self.data)

    def text(self, expected: str, *, keeps_wrong_bytes: bool = False) -> str:
        """Return the file as text, without a byte-order mark.

        expected: what the file should be, for the error message.
        keeps_wrong_bytes: whether bytes that are not UTF-8 become lone surrogates (Python's error handler
            "surrogateescape"). Otherwise such a file is refused.
        Raises InputError with a remedy if the file is compressed, binary, a shard of
        examples, or not in UTF-8.
        """
        path, data = self
        kind = find_kind(data[:HEAD_BYTES], path, whole=len(data) <= HEAD_BYTES)
        if kind is not None and not kind.name.startswith("JSON"):
            raise InputError(f"{path}: looks like {kind.name}, expected {expected}; {kind.remedy}")
        try:
            # The byte-order mark is removed after decoding, so that positions in decoding errors include it.
            errors = "surrogateescape" if keeps_wrong_bytes else "strict"
            return data.decode(errors=errors).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            if (zero := data.find(0, 0, HEAD_BYTES)) >= 0:
                raise InputError(
                    f"{path}: is no text: byte 0x00 at offset {zero}, expected {expected}"
                ) from None
            raise InputError.not_utf8(path, data, error.start, suggest_utf8_remedy(data, path)) from None


def read_file(path: str) -> DataFile:
    """Read a file of labelled data as a whole."""
    return DataFile(path, storage.read_bytes(path))


def parse_json(text: str, where: str, expected: str, *, any_number: bool = False) -> Any:
    """Return the value of a JSON text. Raise InputError if the text is not JSON.

    where: place of the text, for the error message.
    expected: what the text should be, for the error message.
    any_number: whether NaN, Infinity and numbers that are too large for a float are accepted.
    """
    try:
        return parse_json_text(text, any_number=any_number)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}; expected {expected}") from None
