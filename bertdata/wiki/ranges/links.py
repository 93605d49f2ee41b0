"""Checks that the ranges of a bzip2 file were read without a gap, from a small summary of each range.

A worker reads only its own range. It cannot know whether the range before ends exactly where the first bzip2
block of its range starts. It also cannot check the checksum of a stream that spans several ranges. For this
checksum, bzip2 rotates the value to the left by one bit after each block, and then xors it with the checksum
of the block. Each worker reports its part of this computation, and the parts are combined here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import InputError


@dataclass(frozen=True, slots=True)
class BlockChecksums:
    """Checksums of consecutive bzip2 blocks, combined into a single value.

    If the checksum of the stream before these blocks is known, ``compute_after`` returns the checksum after
    them.

    blocks: number of blocks.
    value: checksum of the stream after the blocks, if it is 0 before them.
    """

    blocks: int = 0
    value: int = 0

    def add_block(self, checksum: int) -> "BlockChecksums":
        """Return a copy that includes one more block.

        checksum: checksum of this block.
        """
        return BlockChecksums(self.blocks + 1, _rotate_left(self.value, 1) ^ checksum)

    def compute_after(self, before: int) -> int:
        """Return the checksum of the stream after these blocks.

        before: checksum of the stream before these blocks.
        """
        # Rotating the xor of two values is the same as rotating both and then taking the xor. Therefore
        # ``before`` can be rotated once for each block and then be xored with the value of all blocks,
        # instead of doing this block by block.
        return _rotate_left(before, self.blocks) ^ self.value


def _rotate_left(value: int, bits: int) -> int:
    """Rotate a value of 32 bits to the left."""
    bits %= 32
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeLink:
    """Start, end and checksums of a range of a bzip2 file, to be compared with the ranges before and after
    it.

    If the dump is not a bzip2 file, all fields have their defaults.

    first: bit of the file at which the first block of the range starts, or None if no block starts in the
        range.
    reached: bit at which the first block after the range starts, or None if the file has no more blocks.
    head: checksums of the blocks before the first end of a stream in the range.
    head_checksum: checksum in the file at this end of a stream, or None if no stream ends in the range.
    tail: checksums of the blocks after the last end of a stream in the range.
    """

    first: int | None = None
    reached: int | None = None
    head: BlockChecksums = BlockChecksums()
    head_checksum: int | None = None
    tail: BlockChecksums = BlockChecksums()


def check_links(name: str, links: Sequence[RangeLink]) -> None:
    """Raise InputError if a block between two ranges was missed, or if the checksum of a stream is wrong.

    name: path of the dump, for error messages.
    links: summary of each range, in order.
    """
    # at: bit of the file at which the next block must start.
    # sum_before: checksum so far of the stream that has not ended there.
    # A stream that starts and ends inside a range was checked by the worker of the range (Bzip2Range). Only
    # the head and the tail of each range are needed here. For example, range 0 ends with the start of stream
    # A. Range 1 has the rest of A (its head), the whole stream B, and the start of C (its tail).
    at = links[0].first if links else None
    sum_before = 0
    for link in links:
        if link.first is None:
            if link is links[0]:
                at = link.reached
            continue
        if link.first != at:
            raise make_damaged_error(name, min(link.first, link.first if at is None else at) // 8)
        at = link.reached
        sum_before = link.head.compute_after(sum_before)
        if link.head_checksum is not None:
            if sum_before != link.head_checksum:
                raise InputError(
                    f"{name}: byte {link.first // 8}: the checksum of the bzip2 stream that goes on here is "
                    "wrong; compare the file's md5 with the published one and download it again"
                )
            sum_before = link.tail.value
    if at is not None:
        raise make_damaged_error(name, at // 8)


def make_damaged_error(name: str, offset: int) -> InputError:
    """Make the error for a bzip2 block that cannot be decompressed.

    name: path of the file.
    offset: first byte of the block in the file.
    """
    return InputError(
        f"{name}: byte {offset}: the bzip2 block that starts here is damaged; "
        "compare the file's md5 with the published one and download it again"
    )
