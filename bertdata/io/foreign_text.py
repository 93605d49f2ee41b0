"""Text that anybody may have written: its bytes, UTF-8, line ends, and limits of JSON and TOML in it."""

from collections.abc import Iterator
from typing import Any

from bertdata.io import storage

MOST_NESTED = 500
"""The deepest nesting of lists and tables. Python's own limit is that of its stack, some 1,000 calls."""

TOO_DEEP = f"its values are nested more than {MOST_NESTED} deep"

MOST_DIGITS = 300
"""The most digits of an integer, so that each is a float too (below 1e308).

Python itself reads 4,300, or what its environment says.
"""


def read_bounded(path: str, most_bytes: int) -> bytes:
    """Return the bytes of a file. ValueError where there are more than ``most_bytes``."""
    with storage.open_input(path) as file:
        data: bytes = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"the file is larger than {most_bytes >> 20:,} MiB")
    return data


def decode_utf8(data: bytes | str, *, keeps_mark: bool = False) -> str:
    """Return the text without a byte-order mark. ValueError names the byte that is not UTF-8.

    keeps_mark: the mark is a character, as it is for programs that do not know it.
    """
    try:
        if isinstance(data, str):
            data.encode()  # words of the command line may hold bytes that are no text
            return data
        text = data.decode()
        return text if keeps_mark else text.removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise ValueError(f"line {line}: byte 0x{byte:02x} at offset {error.start} is not UTF-8") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a pair, and no character") from None


def is_nested_too_deeply(value: Any) -> bool:
    """Return True where lists and tables are nested more than MOST_NESTED deep."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [inner for outer in level for inner in _containers(outer)]
        if not level:
            return False
    return True


def _containers(value: Any) -> Iterator[Any]:
    """Yield the lists and tables directly within a value."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return
    for inner in value:
        if isinstance(inner, dict | list):
            yield inner


def universal_newlines(data: bytes) -> bytes:
    r"""Return the data with ``\n`` as its only line end, as Python's text mode reads it."""
    if b"\r" not in data:
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
