"""Find the blocks of a bzip2 file without an index, from its start or from any byte.

A bzip2 file is a sequence of streams. Each stream is a header, blocks of at most 900 kB, and an end mark with
a checksum over the blocks. A block does not depend on anything before it, but may start at any bit. Blocks
are found by their 48-bit magic number. A file with a single stream can therefore be read in parallel as well
as one with many (Wikipedia's multistream dumps).
"""

from collections.abc import Generator, Iterator
from typing import BinaryIO, NamedTuple

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090
_MASK40, _MASK48 = (1 << 40) - 1, (1 << 48) - 1
_READ_BYTES = 128 << 10
# a compressed block has at most 900,000 symbols of at most 20 bits, and some tables
_MAX_BLOCK_BYTES = 4 << 20
# End mark, checksum, next header and next magic number take 7 + 48 + 32 + 7 + 32 + 48 bits.
_LOOKAHEAD_BYTES = 32
_END_BYTES = 11  # end mark and checksum, starting at any bit
_STREAM_BEGIN_BYTES = 10
_HEADERS = tuple(b"BZh%d" % level for level in range(1, 10))

_STREAM_BEGINS = [
    header + magic.to_bytes(6, "big") for header in _HEADERS for magic in (BLOCK_MAGIC, END_MAGIC)
]


class Block(NamedTuple):
    """One compressed block of a bzip2 file: ``length`` bits of ``data`` from bit ``shift`` on.

    offset, end: first byte of the block in the file, and the byte after it.
    stream_checksum: checksum at the end of the block's stream, if this is the last block of a stream, else
    None.
    """

    data: bytes
    shift: int
    length: int
    offset: int
    end: int
    stream_checksum: int | None = None

    @property
    def bits(self) -> int:
        value = int.from_bytes(self.data, "big") >> (8 * len(self.data) - self.shift - self.length)
        return value & ((1 << self.length) - 1)

    @property
    def checksum(self) -> int:
        # The data start with up to 7 bits of the block before, 48 bits of magic number and 32 bits of
        # checksum.
        head = int.from_bytes(self.data[:11].ljust(11, b"\0"), "big")
        return (head >> (8 - self.shift)) & 0xFFFFFFFF

    def join_next(self, other: "Block") -> "Block":
        """Return a block with the bits of this block and the next.

        The two are halves of one block that contains the magic number by chance.
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

    start: byte at which to start searching. The first block is the first that starts at this byte or later
    (``Block.offset`` >= start), so that the ranges of a file divide its blocks among them.

    Zeros after the last stream are skipped: they pad a tape, or a file of fixed size. Other bytes in which no
    block starts, such as a line end, are skipped too, as bzip2 does. Raises InputError if the file is not
    bzip2 or ends too early.
    """
    if not start:
        yield from _read_streams(_Window(file, name, engine=engine), 0)
        return
    # In the middle of the file, search for any mark. If it is an end mark, a stream starts after it. If it is
    # a block's magic number, read on in this stream.
    file.seek(start)
    window = _Window(file, name, start, engine)
    if window.fill(start + _END_BYTES) and window.has_only_zeros_from(start + _END_BYTES):
        return  # the range starts in the padding after the last stream
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
    """Yield the blocks of all streams from byte ``position`` on, where a stream starts or the file ends."""
    while window.fill(position) and not window.has_only_zeros_from(position):
        if window.get_bytes(position, 4) not in _HEADERS:
            if position > 0 and window.has_only_other_bytes_from(
                position
            ):  # only bytes that are ignored follow an empty stream
                return
            raise InputError(
                f"{window.name}: byte {position}: no bzip2 stream starts here, expected BZh1 to BZh9 or "
                "the end"
            )
        bit = 8 * (position + 4)
        if window.get_magic(bit) == END_MAGIC:  # an empty stream
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
    """Yield the blocks of a stream from the block at bit ``start`` on.

    Returns the byte after the stream, or None after the last stream if bytes follow that are not bzip2.
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
    """Return the first byte after a stream, from the bit at which its end mark starts."""
    return (bit + 80 + 7) // 8


class _Window:
    """Part of the file that is held in memory, with the positions of the magic numbers (marks) in it."""

    def __init__(self, file: BinaryIO, name: str, start: int = 0, engine: Engine | None = None) -> None:
        self._file = file
        self.name = name
        self._find_marks = kernels.find_bzip2_marks if use_native(engine or default_engine()) else find_marks
        self._data = b""
        self._start = start  # offset of _data in the file
        # pairs of a mark's bit in the file and whether it is an end mark, last mark first
        self._marks: list[tuple[int, bool]] = []
        self._scanned = start  # marks that start before this byte are known
        self.at_end = False
        self._zeros_from: int | None = None  # from this byte on, only zeros follow; they are not kept
        # last end mark that is not followed by a stream, zeros or the end of the file
        self._doubtful_end: int | None = None

    @property
    def end(self) -> int:
        return self._start + len(self._data)

    def fill(self, position: int) -> bool:
        """Read until the window holds the bytes around ``position``.

        Returns False if the file ends before it.
        """
        while not self.at_end and self.end < position + _LOOKAHEAD_BYTES:
            self._read()
        return position < self.end

    def _read(self) -> None:
        more = self._file.read(_READ_BYTES)
        self.at_end = not more
        self._data += more
        # The last bytes are not scanned yet, because a mark may continue in the next read.
        last = self.end if self.at_end else max(self._scanned, self.end - _LOOKAHEAD_BYTES)
        found = self._find_marks(self._data, self._scanned - self._start, last - self._start)
        self._marks = sorted(
            [*self._marks, *((8 * self._start + bit, end) for bit, end in found)], reverse=True
        )
        self._scanned = last

    def drop_before(self, position: int) -> None:
        """Remove the data before this byte from memory, if that frees enough of it."""
        if position - self._start > _READ_BYTES:
            self._data = self._data[position - self._start :]
            self._start = position

    def get_bytes(self, position: int, count: int) -> bytes:
        return self._data[position - self._start : position - self._start + count]

    def get_bits(self, bit: int, count: int) -> int:
        """Return ``count`` bits of the file. Bits after its end are zero."""
        size = (bit % 8 + count + 7) // 8
        value = int.from_bytes(self.get_bytes(bit // 8, size).ljust(size, b"\0"), "big")
        return value >> (8 * size - bit % 8 - count) & ((1 << count) - 1)

    def get_magic(self, bit: int) -> int:
        self.fill(bit // 8)
        return self.get_bits(bit, 48)

    def find_next_mark(self, bit: int) -> tuple[bool, int] | None:
        """Find the next mark, from this bit of the file on.

        Returns whether it is an end mark, and its bit. Returns None at the end of the file, and if there is
        no mark within the length of the longest possible block.
        """
        while True:
            # The marks are sorted in descending order, so the last element is the next mark in the file.
            while self._marks:
                found, is_end = self._marks.pop()
                if found < bit:
                    continue  # inside the block that was read already
                if not is_end or self._ends_stream(found):
                    return is_end, found
                self._doubtful_end = found
            if self.at_end or self.end - bit // 8 > _MAX_BLOCK_BYTES:
                return None
            self._read()

    def find_end_before_other_bytes(self, bit: int) -> int | None:
        """Return the bit of the last stream's end mark, if bytes that are not bzip2 follow it.

        Call this method when ``find_next_mark`` has returned None for ``bit``. Returns None if there is no
        such end mark, or if the file ends inside the first bytes of another stream.
        """
        found = self._doubtful_end
        if found is None or found < bit or self._may_start_stream(_find_stream_end(found)):
            return None
        return found

    def has_only_other_bytes_from(self, position: int) -> bool:
        """Return True if no stream starts at this byte and no mark follows."""
        return not self._may_start_stream(position) and self.find_next_mark(8 * position) is None

    def _may_start_stream(self, position: int) -> bool:
        """Return True if a stream may start at this byte, also if the file ends within its first bytes."""
        found = self.get_bytes(position, _STREAM_BEGIN_BYTES)
        return any(begin.startswith(found) for begin in _STREAM_BEGINS)

    def has_only_zeros_from(self, position: int) -> bool:
        """Return True if at least one byte follows and all following bytes are zero.

        If there are more zeros than a block has bytes, the remaining ones are read without being kept. No
        block can reach across so many zeros.
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
        """Read the rest of the file, which must contain only zeros. Raises InputError for any other byte."""
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
        """Return True if a stream may end here, because another stream, zeros or the end of the file follow.

        Other bytes mean that the mark is probably a chance match inside a block.
        """
        following = _find_stream_end(bit)
        if not self.fill(following):
            return following == self.end
        if self.get_bytes(following, 4) in _HEADERS:
            return self.get_magic(8 * (following + 4)) in (BLOCK_MAGIC, END_MAGIC)
        return self.has_only_zeros_from(following)

    def make_block(self, start: int, stop: int, stream_checksum: int | None) -> Block:
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
    """Find the magic numbers of blocks and stream ends in the data.

    Yields the bit position of each, and whether it is an end mark.

    start, stop: only magic numbers that start in these bytes are found.

    A magic number at bit k of byte i fills the bytes i+1 to i+5 completely. These five bytes are searched
    for.
    """
    # bytes.find is far faster than a loop over bits. For each of the eight bit offsets, search for the five
    # bytes that the magic number then fills, and compare the bits around them only at a hit.
    for magic, is_end in ((BLOCK_MAGIC, False), (END_MAGIC, True)):
        for k in range(8):
            needle = ((magic >> k) & _MASK40).to_bytes(5, "big")
            at = data.find(needle, start + 1)
            while 0 <= at - 1 < stop:
                seven = int.from_bytes(data[at - 1 : at + 6].ljust(7, b"\0"), "big")
                if seven >> (8 - k) & _MASK48 == magic:
                    yield 8 * (at - 1) + k, is_end
                at = data.find(needle, at + 1)
