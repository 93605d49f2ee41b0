"""Stage 5 of MLPerf's text processing: group the files into parts of a limited size, the block size."""

from collections.abc import Sequence

from bertdata.errors import InputError

MEBIBYTE = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def plan_parts(sizes: Sequence[int], block_size: float, names: Sequence[str]) -> list[int]:
    """Assign consecutive files to parts, and return the number of each file's part.

    A file larger than the block size becomes a part by itself. If the first file is that large, InputError is
    raised, because MLPerf's program crashes then.

    sizes: sizes of the extracted files in bytes, before any cleaning.
    block_size: largest size of a part in MiB.
    names: paths of the files, for errors.
    """
    block_bytes = block_size * MEBIBYTE
    if sizes and sizes[0] > block_bytes:
        raise InputError(
            f"{names[0]}: {sizes[0]} bytes, expected at most a block of {block_bytes:.0f} bytes "
            f"({block_size} MiB) for the first file; choose a larger block size"
        )
    # For example, with a block size of 10, files of the sizes [4, 5, 3, 20, 1] go to the parts [0, 0, 1, 2,
    # 3].
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
    """Return a file's training text as it is written into its part.

    A byte-order mark is removed, and two newlines at the end become a single newline.
    """
    text = training.removeprefix(_BOM)
    return text[:-1] if text.endswith(b"\n\n") else text
