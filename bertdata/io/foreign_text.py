"""Safe reading of text files from unknown sources: limits of size and nesting, UTF-8, line ends."""

from collections.abc import Iterator
from typing import Any

from bertdata.io import storage

MOST_NESTED = 500
"""Deepest nesting of lists and tables that is accepted.

The limit is half of Python's recursion limit (about 1,000), at which Python's parsers themselves fail.
"""

TOO_DEEP = f"its values are nested more than {MOST_NESTED} deep"

MOST_DIGITS = 300
"""Most digits that an integer may have. Every such integer also fits into a float (below 1e308).

Python itself accepts up to 4,300 digits, or a number that an environment variable sets.
"""


def read_bounded(path: str, most_bytes: int) -> bytes:
    """Return the contents of a file. Raises ValueError if it has more than ``most_bytes``."""
    with storage.open_input(path) as file:
        data: bytes = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"the file is larger than {most_bytes >> 20:,} MiB")
    return data


def decode_utf8(data: bytes | str, *, keeps_mark: bool = False) -> str:
    """Return the decoded text without a byte-order mark.

    Raises ValueError, which names the first byte that is not UTF-8.

    keeps_mark: keep the byte-order mark as a character, like programs that do not know this mark.
    """
    try:
        if isinstance(data, str):
            data.encode()  # command-line arguments may contain lone surrogates, which are not text
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
    """Return True if lists and dicts in a JSON or TOML value are nested more than MOST_NESTED deep."""
    # Breadth first, level by level: a recursive walk would itself fail on a deeply nested value.
    level = [value]
    for _ in range(MOST_NESTED):
        level = [inner for outer in level for inner in _list_containers(outer)]
        if not level:
            return False
    return True


def _list_containers(value: Any) -> Iterator[Any]:
    """Yield the lists and dicts directly inside a value."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return
    for inner in value:
        if isinstance(inner, dict | list):
            yield inner


def replace_line_ends(data: bytes) -> bytes:
    r"""Return the data with all line ends (\r\n, \r) replaced by \n, as Python's text mode does."""
    if b"\r" not in data:
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
