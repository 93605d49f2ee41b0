"""Copy evenly spaced records of a TFRecord file, as MLPerf does to make its evaluation set."""

from collections.abc import Callable
from typing import Any, BinaryIO

from bertdata._native import Engine
from bertdata.shards.tfrecord import read_canonical_blocks, split_frames


def pick_records(
    file: BinaryIO, name: str, count: int, write: Callable[[bytes], Any], engine: Engine | None = None
) -> tuple[int, int]:
    """Write ``count`` evenly spaced records in canonical form. Return (records written, records in the file).

    If the file has n records, the written record i is its record ``int(i * n / count)``. If it has fewer than
    ``count`` records, some are written more than once, as MLPerf's program does.

    name: the file, for errors.
    write: function that receives the bytes of the records.
    """
    # The file is read twice. The first time, its records are counted, because their number determines the
    # spacing.
    total = sum(records for _, records in read_canonical_blocks(file, name, engine))
    file.seek(0)
    if not total:
        return 0, 0
    wanted = choose_record_numbers(total, count)
    done = place = 0
    for block, records in read_canonical_blocks(file, name, engine):
        frames = None
        # The block holds the records ``done`` to ``done + records - 1``. It is only split if one of them is
        # picked.
        while place < count and wanted[place] < done + records:
            frames = frames or split_frames(block)
            write(frames[wanted[place] - done])
            place += 1
        done += records
    return count, total


def choose_record_numbers(total: int, count: int) -> list[int]:
    """Return the numbers of the records to pick, in ascending order.

    The spacing is a 64-bit float, so that rounding picks the same records as MLPerf's program.
    """
    spacing = total / count
    return [int(i * spacing) for i in range(count)]
