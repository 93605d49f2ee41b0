"""The check that the ranges of a dump were read without a gap, from small facts about each.

A worker sees one range only. What it cannot know is whether the range before ended where its own first
bzip2 block begins, and whether the checksum of a stream fits that runs over several ranges. A stream's
checksum is a fold over those of its blocks (rotate by one bit, then xor), so each range gives its part of
the fold, and the parts are joined here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import InputError


@dataclass(frozen=True, slots=True)
class BlockChecksums:
    """The fold of some successive blocks' checksums: it turns a sum before them into the sum behind them."""

    blocks: int = 0
    value: int = 0

    def with_block(self, checksum: int) -> "BlockChecksums":
        """The fold with one more block."""
        return BlockChecksums(self.blocks + 1, _rotated(self.value, 1) ^ checksum)

    def behind(self, before: int) -> int:
        """The stream's sum behind the blocks, from the sum before them."""
        return _rotated(before, self.blocks) ^ self.value


def _rotated(value: int, bits: int) -> int:
    bits %= 32
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeLink:
    """Facts of a range that its neighbours must fit. Of a dump that is not compressed with bzip2, none.

    first: bit of the file at which the range's first block begins, None where no block begins in it.
    reached: bit at which the next block after the range begins, None at the file's end. head: blocks up to
    the first end of a stream, and the checksum that stands there (None: no stream ends in the range).
    tail: blocks behind the last end of a stream.
    """

    first: int | None = None
    reached: int | None = None
    head: BlockChecksums = BlockChecksums()
    head_checksum: int | None = None
    tail: BlockChecksums = BlockChecksums()


def check_links(name: str, links: Sequence[RangeLink]) -> None:
    """InputError with the place where the ranges of a bzip2 file, in order, do not follow one another."""
    at = links[0].first if links else None
    sum_before = 0
    for link in links:
        if link.first is None:
            if link is links[0]:
                at = link.reached
            continue
        if link.first != at:
            raise damaged(name, min(link.first, link.first if at is None else at) // 8)
        at = link.reached
        sum_before = link.head.behind(sum_before)
        if link.head_checksum is not None:
            if sum_before != link.head_checksum:
                raise InputError(
                    f"{name}: byte {link.first // 8}: the checksum of the bzip2 stream that goes on here is "
                    "wrong; compare the file's md5 with the published one and download it again"
                )
            sum_before = link.tail.value
    if at is not None:
        raise damaged(name, at // 8)


def damaged(name: str, offset: int) -> InputError:
    """The error for a block that cannot be decompressed."""
    return InputError(
        f"{name}: byte {offset}: the bzip2 block that starts here is damaged; "
        "compare the file's md5 with the published one and download it again"
    )
