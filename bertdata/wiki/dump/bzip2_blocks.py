"""Finds the compressed blocks of a bzip2 file, from the start of the file or from any byte.

No index is needed.

A bzip2 file is a sequence of streams. A stream consists of a header, blocks of at most 900 kB, and an end
mark with a checksum over the blocks. A block does not depend on anything before it, but may start at any bit.
Blocks are found by their 48-bit magic number. A file with a single stream can therefore be read in parallel
just as well as a file with many streams (such as Wikipedia's multistream dumps).
"""

from collections.abc import Generator, Iterator
from typing import BinaryIO, NamedTuple

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090
_MASK40, _MASK48 = (1 << 40) - 1, (1 << 48) - 1
_READ_BYTES = 128 << 10
# A compressed block consists of at most 900,000 symbols of at most 20 bits, and some tables.
_MAX_BLOCK_BYTES = 4 << 20
# At the end of a stream, the end mark, the checksum, the next header and the next magic number take 7 + 48 +
# 32 + 7 + 32 + 48 bits, including the padding before the first and the third of them.
_LOOKAHEAD_BYTES = 32
_END_BYTES = 11  # size of the end mark and the checksum, which may start at any bit of a byte
_STREAM_BEGIN_BYTES = 10
_HEADERS = tuple(b"BZh%d" % level for level in range(1, 10))

_STREAM_BEGINS = [
    header + magic.to_bytes(6, "big") for header in _HEADERS for magic in (BLOCK_MAGIC, END_MAGIC)
]


class Block(NamedTuple):
    """A compressed block of a bzip2 file.

    data: bytes that contain the block.
    shift: bit of ``data`` at which the block starts.
    length: number of bits of the block.
    offset: first byte of the block in the file.
    end: byte after the block in the file.
    stream_checksum: checksum at the end of the stream if this is its last block, otherwise None.
    """

    data: bytes
    shift: int
    length: int
    offset: int
    end: int
    stream_checksum: int | None = None

    @property
    def bits(self) -> int:
        """The bits of the block as a single integer."""
        value = int.from_bytes(self.data, "big") >> (8 * len(self.data) - self.shift - self.length)
        return value & ((1 << self.length) - 1)

    @property
    def checksum(self) -> int:
        """Checksum of the block's text, which the block contains."""
        # The data start with up to 7 bits of the block before. Then follow 48 bits of magic number and 32
        # bits of checksum.
        head = int.from_bytes(self.data[:11].ljust(11, b"\0"), "big")
        return (head >> (8 - self.shift)) & 0xFFFFFFFF

    def join_next(self, other: "Block") -> "Block":
        """Return a block that has the bits of this block and of the next block.

        other: the next block. Both are halves of a single block that contains the magic number by chance.
        """
        length = self.length + other.length
        value = (self.bits << other.length | other.bits) << (-length % 8)
        return Block(
            data=value.to_bytes((length + 7) // 8, "big"),
            shift=0,
            length=length,
            offset=self.offset,
            end=other.end,
            stream_checksum=other.stream_checksum,
        )


def find_blocks(
    file: BinaryIO, name: str, *, start: int = 0, engine: Engine | None = None
) -> Iterator[Block]:
    """Find the compressed blocks of a bzip2 file, and yield them in order.

    Zeros after the last stream are skipped, because they fill a tape or a file of fixed size. As in the
    program bzip2, other bytes at the end in which no block starts, such as a line end, are skipped too.

    name: path of the file, for error messages.
    start: byte of the file at which the search starts. Only blocks that start at this byte or later are
        found, so that every block of a file belongs to exactly one of several ranges.

    Raises InputError if the file is not bzip2, or ends too early.
    """
    if not start:
        yield from _read_streams(_Window(file, name, engine=engine), 0)
        return
    # In the middle of the file, search for the next mark of any kind. If it is an end mark, a stream starts
    # after it. If it is the magic number of a block, this block and the rest of its stream are read.
    file.seek(start)
    window = _Window(file, name, start, engine)
    if window.fill(start + _END_BYTES) and window.has_only_zeros_from(start + _END_BYTES):
        return  # The search starts in the padding after the last stream.
    mark = window.find_next_mark(8 * start)
    if mark is not None:
        is_end, bit = mark
        position = _find_stream_end(bit) if is_end else (yield from _read_blocks(window, bit))
        if position is not None:
            yield from _read_streams(window, position)
    elif not window.at_end:
        raise InputError(
            f"{name}: byte {start}: no bzip2 block starts within {_MAX_BLOCK_BYTES >> 20} MiB of here: the "
            "file is damaged, or its download was not finished; download it again"
        )


def _read_streams(window: "_Window", position: int) -> Iterator[Block]:
    """Yield the blocks of all streams from a byte of the file on.

    position: the byte. A stream starts there, or the file ends there.
    """
    while window.fill(position) and not window.has_only_zeros_from(position):
        if window.get_bytes(position, 4) not in _HEADERS:
            # After a stream without blocks, only bytes may follow that are not bzip2. They are ignored.
            if position > 0 and window.has_only_other_bytes_from(position):
                return
            raise InputError(
                f"{window.name}: byte {position}: no bzip2 stream starts here, expected BZh1 to BZh9 or "
                "the end"
            )
        bit = 8 * (position + 4)
        if window.get_magic(bit) == END_MAGIC:  # The stream has no blocks.
            position = _find_stream_end(bit)
        elif window.get_magic(bit) == BLOCK_MAGIC:
            behind = yield from _read_blocks(window, bit)
            if behind is None:
                return
            position = behind
        else:
            raise InputError(
                f"{window.name}: byte {position + 4}: no bzip2 block starts here; the file is damaged"
            )


def _read_blocks(window: "_Window", start: int) -> Generator[Block, None, int | None]:
    """Yield the blocks of a stream from a bit of the file on.

    start: bit at which a block starts.

    Returns the byte after the stream. Returns None if this was the last stream, and other bytes that are not
    bzip2 follow.
    """
    while (mark := window.find_next_mark(start + 48)) is not None:
        is_end, bit = mark
        yield window.make_block(start, bit, stream_checksum=window.get_bits(bit + 48, 32) if is_end else None)
        if is_end:
            return _find_stream_end(bit)
        start = bit
        window.drop_before(start // 8)
    if (end := window.find_end_before_other_bytes(start + 48)) is not None:
        yield window.make_block(start, end, stream_checksum=window.get_bits(end + 48, 32))
        return None
    raise InputError(
        f"{window.name}: truncated: ends at byte {window.end} inside a bzip2 block that starts at "
        f"byte {start // 8}; download it again"
        if window.at_end
        else f"{window.name}: byte {start // 8}: the bzip2 block that starts here has no end within "
        f"{_MAX_BLOCK_BYTES >> 20} MiB: the file is damaged, or its download was not finished; "
        "download it again"
    )


def _find_stream_end(bit: int) -> int:
    """Return the first byte after a stream.

    bit: bit of the file at which the end mark of the stream starts.
    """
    return (bit + 80 + 7) // 8


class _Window:
    """Part of a bzip2 file that is in memory, and the positions of the magic numbers (called marks) in it."""

    def __init__(self, file: BinaryIO, name: str, start: int = 0, engine: Engine | None = None) -> None:
        self._file = file
        self.name = name
        self._find_marks = kernels.find_bzip2_marks if use_native(engine or default_engine()) else find_marks
        self._data = b""
        self._start = start  # offset in the file at which _data starts
        # The marks that were found, the last mark first. Each is a bit of the file, and True for an end mark.
        self._marks: list[tuple[int, bool]] = []
        self._scanned = start  # All marks that start before this byte have been found.
        self.at_end = False
        # Byte from which on the file has only zeros. They are not kept in memory.
        self._zeros_from: int | None = None
        # The last end mark after which neither a stream, nor zeros, nor the end of the file follow.
        self._doubtful_end: int | None = None

    @property
    def end(self) -> int:
        """Byte of the file after the part that is in memory."""
        return self._start + len(self._data)

    def fill(self, position: int) -> bool:
        """Read on until the bytes around ``position`` are in memory.

        Returns False if the file ends before this byte.
        """
        while not self.at_end and self.end < position + _LOOKAHEAD_BYTES:
            self._read()
        return position < self.end

    def _read(self) -> None:
        """Read the next piece of the file, and find the marks in it."""
        more = self._file.read(_READ_BYTES)
        self.at_end = not more
        self._data += more
        # Do not search the last bytes yet, because a mark that starts there may continue in the next piece.
        last = self.end if self.at_end else max(self._scanned, self.end - _LOOKAHEAD_BYTES)
        found = self._find_marks(self._data, self._scanned - self._start, last - self._start)
        self._marks = sorted(
            [*self._marks, *((8 * self._start + bit, end) for bit, end in found)], reverse=True
        )
        self._scanned = last

    def drop_before(self, position: int) -> None:
        """Remove the data before a byte of the file from memory, if they are large enough to be worth it."""
        if position - self._start > _READ_BYTES:
            self._data = self._data[position - self._start :]
            self._start = position

    def get_bytes(self, position: int, count: int) -> bytes:
        """Return ``count`` bytes of the file from byte ``position`` on. They must be in memory."""
        return self._data[position - self._start : position - self._start + count]

    def get_bits(self, bit: int, count: int) -> int:
        """Return ``count`` bits of the file from bit ``bit`` on. Bits after the end of the file are zero."""
        size = (bit % 8 + count + 7) // 8
        value = int.from_bytes(self.get_bytes(bit // 8, size).ljust(size, b"\0"), "big")
        return value >> (8 * size - bit % 8 - count) & ((1 << count) - 1)

    def get_magic(self, bit: int) -> int:
        """Return the 48 bits from a bit of the file on, where a magic number is expected."""
        self.fill(bit // 8)
        return self.get_bits(bit, 48)

    def find_next_mark(self, bit: int) -> tuple[bool, int] | None:
        """Find the next magic number of a block or of a stream's end, from a bit of the file on.

        Returns True for the end of a stream or False for a block, and the bit of the file. Returns None if
        the file ends before, or if there is no mark within the length of the longest possible block.
        """
        while True:
            # The marks are sorted in descending order, so the last item of the list is the next mark in the
            # file.
            while self._marks:
                found, is_end = self._marks.pop()
                if found < bit:
                    continue  # The mark is before ``bit``.
                if not is_end or self._ends_stream(found):
                    return is_end, found
                self._doubtful_end = found
            if self.at_end or self.end - bit // 8 > _MAX_BLOCK_BYTES:
                return None
            self._read()

    def find_end_before_other_bytes(self, bit: int) -> int | None:
        """Return the bit of the last stream's end mark, if bytes that are not bzip2 follow the stream.

        This method must be called only after ``find_next_mark`` has returned None for the same bit. Returns
        None if there is no such end mark, or if the file ends inside the header of another stream.
        """
        found = self._doubtful_end
        if found is None or found < bit or self._may_start_stream(_find_stream_end(found)):
            return None
        return found

    def has_only_other_bytes_from(self, position: int) -> bool:
        """Return True if no stream starts at this byte of the file, and no magic number follows it."""
        return not self._may_start_stream(position) and self.find_next_mark(8 * position) is None

    def _may_start_stream(self, position: int) -> bool:
        """Return True if a stream starts at this byte of the file, or may start there but the file ends in
        its header.
        """
        found = self.get_bytes(position, _STREAM_BEGIN_BYTES)
        return any(begin.startswith(found) for begin in _STREAM_BEGINS)

    def has_only_zeros_from(self, position: int) -> bool:
        """Return True if at least one byte follows from this position on, and all following bytes are zero.

        If there are more zeros than the longest block has bytes, the rest of them is read but not kept in
        memory. No block can contain so many zeros.
        """
        if self._zeros_from is not None:
            return position >= self._zeros_from
        if self.get_bytes(position, 1) != b"\0":
            return False
        while _is_zeros(self._data[position - self._start :]):
            if self.end - position > _MAX_BLOCK_BYTES:
                self._skip_zeros()
            if self.at_end:
                self._zeros_from = position
                return True
            self._read()
        return False

    def _skip_zeros(self) -> None:
        """Read the rest of the file, which must contain only zeros.

        Raises InputError for any other byte.
        """
        at = self.end
        while more := self._file.read(_READ_BYTES):
            if not _is_zeros(more):
                zeros = len(more) - len(more.lstrip(b"\0"))
                raise InputError(
                    f"{self.name}: byte {at + zeros}: data behind more than {_MAX_BLOCK_BYTES >> 20} MiB of "
                    "zeros: the file is damaged, or its download was not finished; download it again"
                )
            at += len(more)
        self.at_end = True

    def _ends_stream(self, bit: int) -> bool:
        """Return True if another stream, zeros or the end of the file follow after an end mark.

        If other bytes follow, the mark is probably not an end mark but a part of a block that is equal to it
        by chance.
        """
        following = _find_stream_end(bit)
        if not self.fill(following):
            return following == self.end
        if self.get_bytes(following, 4) in _HEADERS:
            return self.get_magic(8 * (following + 4)) in (BLOCK_MAGIC, END_MAGIC)
        return self.has_only_zeros_from(following)

    def make_block(self, start: int, stop: int, stream_checksum: int | None) -> Block:
        """Make the block that fills the file from bit ``start`` to bit ``stop``."""
        return Block(
            data=self.get_bytes(start // 8, (stop + 7) // 8 - start // 8),
            shift=start % 8,
            length=stop - start,
            offset=start // 8,
            end=(stop + 7) // 8,
            stream_checksum=stream_checksum,
        )


def _is_zeros(data: bytes) -> bool:
    return data == bytes(len(data))


def find_marks(data: bytes, start: int, stop: int) -> Iterator[tuple[int, bool]]:
    """Find the magic numbers of blocks and of stream ends in data.

    start: first byte at which a magic number may start.
    stop: byte after the last byte at which a magic number may start.

    Yields for each magic number its first bit, and True for the end of a stream or False for a block.
    """
    # bytes.find is far faster than a loop over all bits. A magic number of 48 bits that starts at bit k of a
    # byte fills the next five bytes completely. For each k, search for these five bytes, and compare the bits
    # before and after them only where they are found.
    for magic, is_end in ((BLOCK_MAGIC, False), (END_MAGIC, True)):
        for k in range(8):
            needle = ((magic >> k) & _MASK40).to_bytes(5, "big")
            at = data.find(needle, start + 1)
            while 0 <= at - 1 < stop:
                seven = int.from_bytes(data[at - 1 : at + 6].ljust(7, b"\0"), "big")
                if seven >> (8 - k) & _MASK48 == magic:
                    yield 8 * (at - 1) + k, is_end
                at = data.find(needle, at + 1)
