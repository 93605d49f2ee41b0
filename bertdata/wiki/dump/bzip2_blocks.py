"""The blocks of a bzip2 file, found without an index, from its begin or from anywhere in it.

A bzip2 file is a row of streams, each a header, blocks of at most 900 kB and an end mark with a
checksum over its blocks. A block depends on nothing before it, but starts at any bit. Each block is
found by its 48-bit magic number, so that a file of one stream is read in parallel as well as one of
many (Wikipedia's multistream dumps).
"""

from collections.abc import Generator, Iterator
from typing import BinaryIO, NamedTuple

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090
_MASK40, _MASK48 = (1 << 40) - 1, (1 << 48) - 1
_READ_BYTES = 128 << 10
_MAX_BLOCK_BYTES = 4 << 20  # 900,000 symbols of at most 20 bits, and tables
_LOOKAHEAD_BYTES = 32  # end mark, checksum, next header and next magic: 7 + 48 + 32 + 7 + 32 + 48 bits
_END_BYTES = 11  # end mark and checksum, which begin at any bit
_STREAM_BEGIN_BYTES = 10
_HEADERS = tuple(b"BZh%d" % level for level in range(1, 10))

_STREAM_BEGINS = [
    header + magic.to_bytes(6, "big") for header in _HEADERS for magic in (BLOCK_MAGIC, END_MAGIC)
]


class Block(NamedTuple):
    """The bits of one compressed block: ``length`` bits of ``data`` from bit ``shift`` on.

    ``stream_checksum`` is what its stream's end mark says, for the last block of a stream.
    ``end`` is the offset in the file behind it.
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
        head = int.from_bytes(self.data[:11].ljust(11, b"\0"), "big")  # seven bits, magic number, checksum
        return (head >> (8 - self.shift)) & 0xFFFFFFFF

    def joined(self, other: "Block") -> "Block":
        """This block and the next as one."""
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
    """The blocks of all streams in order. InputError where the file is no bzip2 or ends too early.

    Zeros behind the last stream are passed over: a tape's padding, or the rest of a file of fixed size. So
    are other bytes in which no block begins, such as a line end: bzip2 does the same.
    start: a byte anywhere in the file, which is sought: the first block is the first one whose begin lies
    in this byte or behind it (``Block.offset`` >= start). The ranges of a file thus share its blocks out.
    """
    if not start:
        yield from _read_streams(_Window(file, name, engine=engine), 0)
        return
    file.seek(start)
    window = _Window(file, name, start, engine)
    if window.fill(start + _END_BYTES) and window.only_zeros_from(start + _END_BYTES):
        return
    mark = window.next_mark(8 * start)
    if mark is not None:
        is_end, bit = mark
        position = _behind_end(bit) if is_end else (yield from _read_blocks(window, bit))
        if position is not None:
            yield from _read_streams(window, position)
    elif not window.at_end:
        raise InputError(
            f"{name}: byte {start}: no bzip2 block starts within {_MAX_BLOCK_BYTES >> 20} MiB of here: the "
            "file is damaged, or its download was not finished; download it again"
        )


def _read_streams(window: "_Window", position: int) -> Iterator[Block]:
    """The blocks of the streams from byte ``position`` on, where one starts or the file ends."""
    while window.fill(position) and not window.only_zeros_from(position):
        if window.bytes_at(position, 4) not in _HEADERS:
            if position > 0 and window.only_other_bytes_from(position):  # behind an empty stream
                return
            raise InputError(
                f"{window.name}: byte {position}: no bzip2 stream starts here, expected BZh1 to BZh9 or "
                "the end"
            )
        bit = 8 * (position + 4)
        if window.magic_at(bit) == END_MAGIC:  # an empty stream
            position = _behind_end(bit)
        elif window.magic_at(bit) == BLOCK_MAGIC:
            behind = yield from _read_blocks(window, bit)
            if behind is None:
                return
            position = behind
        else:
            raise InputError(
                f"{window.name}: byte {position + 4}: no bzip2 block starts here; the file is damaged"
            )


def _read_blocks(window: "_Window", start: int) -> Generator[Block, None, int | None]:
    """The blocks of a stream from the one at bit ``start`` on. Returns the byte behind the stream.

    None behind the file's last stream, where bytes follow that are none of bzip2's.
    """
    while (mark := window.next_mark(start + 48)) is not None:
        is_end, bit = mark
        yield window.block(start, bit, stream_checksum=window.bits(bit + 48, 32) if is_end else None)
        if is_end:
            return _behind_end(bit)
        start = bit
        window.drop(start // 8)
    if (end := window.end_before_other_bytes(start + 48)) is not None:
        yield window.block(start, end, stream_checksum=window.bits(end + 48, 32))
        return None
    raise InputError(
        f"{window.name}: truncated: ends at byte {window.end} inside a bzip2 block that starts at "
        f"byte {start // 8}; download it again"
        if window.at_end
        else f"{window.name}: byte {start // 8}: the bzip2 block that starts here has no end within "
        f"{_MAX_BLOCK_BYTES >> 20} MiB: the file is damaged, or its download was not finished; "
        "download it again"
    )


def _behind_end(bit: int) -> int:
    """The byte behind a stream whose end mark is at this bit."""
    return (bit + 80 + 7) // 8


class _Window:
    """The part of the file that is looked at, and the marks in it."""

    def __init__(self, file: BinaryIO, name: str, start: int = 0, engine: Engine | None = None) -> None:
        self._file = file
        self.name = name
        self._find_marks = kernels.find_bzip2_marks if use_native(engine or default_engine()) else find_marks
        self._data = b""
        self._start = start  # offset of _data in the file
        self._marks: list[tuple[int, bool]] = []  # bit positions in the file, descending
        self._scanned = start  # marks that start before this byte are known
        self.at_end = False
        self._zeros_from: int | None = None  # nothing but zeros follows, which are not kept
        self._doubtful_end: int | None = None  # bit of the last end mark that no stream, zero or end follows

    @property
    def end(self) -> int:
        return self._start + len(self._data)

    def fill(self, position: int) -> bool:
        """Read until the window holds the bytes around position. False if the file ends before it."""
        while not self.at_end and self.end < position + _LOOKAHEAD_BYTES:
            self._read()
        return position < self.end

    def _read(self) -> None:
        more = self._file.read(_READ_BYTES)
        self.at_end = not more
        self._data += more
        last = self.end if self.at_end else max(self._scanned, self.end - _LOOKAHEAD_BYTES)
        found = self._find_marks(self._data, self._scanned - self._start, last - self._start)
        self._marks = sorted(
            [*self._marks, *((8 * self._start + bit, end) for bit, end in found)], reverse=True
        )
        self._scanned = last

    def drop(self, position: int) -> None:
        """Forget what lies before that byte, now and then."""
        if position - self._start > _READ_BYTES:
            self._data = self._data[position - self._start :]
            self._start = position

    def bytes_at(self, position: int, count: int) -> bytes:
        return self._data[position - self._start : position - self._start + count]

    def bits(self, bit: int, count: int) -> int:
        """``count`` bits of the file, zeros behind its end."""
        size = (bit % 8 + count + 7) // 8
        value = int.from_bytes(self.bytes_at(bit // 8, size).ljust(size, b"\0"), "big")
        return value >> (8 * size - bit % 8 - count) & ((1 << count) - 1)

    def magic_at(self, bit: int) -> int:
        self.fill(bit // 8)
        return self.bits(bit, 48)

    def next_mark(self, bit: int) -> tuple[bool, int] | None:
        """The first mark from that bit on: whether it is an end mark, and its bit.

        None at the file's end, and where no block is as long.
        """
        while True:
            while self._marks:
                found, is_end = self._marks.pop()
                if found < bit:
                    continue
                if not is_end or self._ends_stream(found):
                    return is_end, found
                self._doubtful_end = found
            if self.at_end or self.end - bit // 8 > _MAX_BLOCK_BYTES:
                return None
            self._read()

    def end_before_other_bytes(self, bit: int) -> int | None:
        """The end mark from that bit on which no other mark follows, once ``next_mark`` has found none.

        None where there is none, and where the file ends in the first bytes of another stream.
        """
        found = self._doubtful_end
        if found is None or found < bit or self._begins_stream(_behind_end(found)):
            return None
        return found

    def only_other_bytes_from(self, position: int) -> bool:
        """True if no stream begins at that byte, and no mark follows."""
        return not self._begins_stream(position) and self.next_mark(8 * position) is None

    def _begins_stream(self, position: int) -> bool:
        """True if the bytes there begin a stream, though the file may end within its first bytes."""
        found = self.bytes_at(position, _STREAM_BEGIN_BYTES)
        return any(begin.startswith(found) for begin in _STREAM_BEGINS)

    def only_zeros_from(self, position: int) -> bool:
        """True if at least one byte follows, and all are zeros.

        Of more zeros than a block has bytes, which none can lie across, the rest is read but not kept.
        """
        if self._zeros_from is not None:
            return position >= self._zeros_from
        if self.bytes_at(position, 1) != b"\0":
            return False
        while _is_zeros(self._data[position - self._start :]):
            if self.end - position > _MAX_BLOCK_BYTES:
                self._pass_over_zeros()
            if self.at_end:
                self._zeros_from = position
                return True
            self._read()
        return False

    def _pass_over_zeros(self) -> None:
        """Read to the file's end. InputError for a byte that is not zero."""
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
        """True if a stream may end here: another follows, or nothing (chance matches do not pass)."""
        following = _behind_end(bit)
        if not self.fill(following):
            return following == self.end
        if self.bytes_at(following, 4) in _HEADERS:
            return self.magic_at(8 * (following + 4)) in (BLOCK_MAGIC, END_MAGIC)
        return self.only_zeros_from(following)

    def block(self, start: int, stop: int, stream_checksum: int | None) -> Block:
        return Block(
            data=self.bytes_at(start // 8, (stop + 7) // 8 - start // 8),
            shift=start % 8,
            length=stop - start,
            offset=start // 8,
            end=(stop + 7) // 8,
            stream_checksum=stream_checksum,
        )


def _is_zeros(data: bytes) -> bool:
    return data == bytes(len(data))


def find_marks(data: bytes, start: int, stop: int) -> Iterator[tuple[int, bool]]:
    """Bit positions of both magic numbers that start in bytes start to stop, whether each is the end mark.

    A magic number at bit k of byte i fills the bytes i+1 to i+5, which are searched for.
    """
    for magic, is_end in ((BLOCK_MAGIC, False), (END_MAGIC, True)):
        for k in range(8):
            needle = ((magic >> k) & _MASK40).to_bytes(5, "big")
            at = data.find(needle, start + 1)
            while 0 <= at - 1 < stop:
                seven = int.from_bytes(data[at - 1 : at + 6].ljust(7, b"\0"), "big")
                if seven >> (8 - k) & _MASK48 == magic:
                    yield 8 * (at - 1) + k, is_end
                at = data.find(needle, at + 1)
