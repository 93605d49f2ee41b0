"""Check that the ranges of a bzip2 file were read without a gap, from a small summary of each range.

A worker sees only its range. It does not know whether the range before ended where its first bzip2 block
starts. It also cannot check the checksum of a stream that spans several ranges. That checksum is computed
block by block: rotate left by one bit, then xor the block's checksum. Each range reports its part of this
computation, and the parts are combined here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import InputError


@dataclass(frozen=True, slots=True)
class BlockChecksums:
    """Checksums of consecutive bzip2 blocks, combined into one value.

    From the checksum of a stream before these blocks, ``update`` computes the checksum after them.

    blocks: number of blocks.
    value: checksum after the blocks if the checksum before them is 0.
    """

    blocks: int = 0
    value: int = 0

    def with_block(self, checksum: int) -> "BlockChecksums":
        """Return a copy that includes one more block, which has this checksum."""
        return BlockChecksums(self.blocks + 1, _rotate_left(self.value, 1) ^ checksum)

    def update(self, before: int) -> int:
        """Return the stream's checksum after these blocks.

        before: checksum of the stream before them.
        """
        # Rotation distributes over xor: rotating the checksum before the blocks once per block, then xoring
        # the blocks' value, equals updating it block by block.
        return _rotate_left(before, self.blocks) ^ self.value


def _rotate_left(value: int, bits: int) -> int:
    bits %= 32
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeLink:
    """Start, end and checksums of a range of a bzip2 file, to be matched with the neighbouring ranges.

    All fields keep their defaults if the dump is not bzip2.

    first: bit of the file at which the range's first block starts, or None if no block starts in the range.
    reached: bit at which the next block after the range starts, or None at the end of the file.
    head: checksums of the blocks before the first end of a stream in the range.
    head_checksum: checksum stored at that end, or None if no stream ends in the range.
    tail: checksums of the blocks after the last end of a stream in the range.
    """

    first: int | None = None
    reached: int | None = None
    head: BlockChecksums = BlockChecksums()
    head_checksum: int | None = None
    tail: BlockChecksums = BlockChecksums()


def check_links(name: str, links: Sequence[RangeLink]) -> None:
    """Raise InputError if a block between two ranges was missed, or if a stream's checksum is wrong.

    name: path of the dump, for errors.
    links: summary of each range, in order.
    """
    # at: bit at which the next block must start.
    # sum_before: checksum so far of the stream that is open there.
    # Streams that start and end inside one range are checked by its worker (Bzip2Range), so only the head and
    # the tail of each range matter here:
    #   range 0: [start of stream A]   range 1: [rest of A = head] [stream B] [start of C = tail]
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
        sum_before = link.head.update(sum_before)
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

    ``offset`` is its first byte in the file.
    """
    return InputError(
        f"{name}: byte {offset}: the bzip2 block that starts here is damaged; "
        "compare the file's md5 with the published one and download it again"
    )
