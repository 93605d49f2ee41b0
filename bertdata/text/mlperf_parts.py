"""Stage 5 of MLPerf's text stage: files are gathered into parts of at most a block."""

from collections.abc import Sequence

from bertdata.errors import InputError

MEBIBYTE = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def plan_parts(sizes: Sequence[int], block_size: float, names: Sequence[str]) -> list[int]:
    """The part each file goes to, files in order.

    ``sizes`` are the bytes of the extracted files as they are before any cleaning, ``block_size`` is in
    MiB. A file that is larger than a block gets a part of its own, unless it is the first: there the
    original crashes, here it is an InputError.
    """
    block_bytes = block_size * MEBIBYTE
    if sizes and sizes[0] > block_bytes:
        raise InputError(
            f"{names[0]}: {sizes[0]} bytes, expected at most a block of {block_bytes:.0f} bytes "
            f"({block_size} MiB) for the first file; choose a larger block size"
        )
    numbers: list[int] = []
    number = part_bytes = 0
    for size in sizes:
        if part_bytes + size > block_bytes:
            number += 1
            part_bytes = 0
        part_bytes += size
        numbers.append(number)
    return numbers


def part_text(training: bytes) -> bytes:
    """A file's training text as its part holds it: no byte order mark, one of two last newlines."""
    text = training.removeprefix(_BOM)
    return text[:-1] if text.endswith(b"\n\n") else text
