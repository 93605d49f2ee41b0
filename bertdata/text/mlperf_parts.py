"""Stage 5 of MLPerf's text stage: group the files into parts of at most one block."""

from collections.abc import Sequence

from bertdata.errors import InputError

MEBIBYTE = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def plan_parts(sizes: Sequence[int], block_size: float, names: Sequence[str]) -> list[int]:
    """Assign consecutive files to parts of at most one block, and return each file's part number.

    sizes: bytes of the extracted files before any cleaning.
    block_size: largest part in MiB.
    names: paths of the files, for errors.

    A file larger than a block becomes a part by itself. For the first file this raises InputError, because
    MLPerf's program crashes in this case.
    """
    block_bytes = block_size * MEBIBYTE
    if sizes and sizes[0] > block_bytes:
        raise InputError(
            f"{names[0]}: {sizes[0]} bytes, expected at most a block of {block_bytes:.0f} bytes "
            f"({block_size} MiB) for the first file; choose a larger block size"
        )
    # block 10: sizes [4, 5, 3, 20, 1] -> parts [0, 0, 1, 2, 3]
    numbers: list[int] = []
    number = part_bytes = 0
    for size in sizes:
        if part_bytes + size > block_bytes:
            number += 1
            part_bytes = 0
        part_bytes += size
        numbers.append(number)
    return numbers


def trim_part_text(training: bytes) -> bytes:
    """Return a file's training text as its part contains it.

    A byte-order mark is removed, and two newlines at the end become a single newline.
    """
    text = training.removeprefix(_BOM)
    return text[:-1] if text.endswith(b"\n\n") else text
