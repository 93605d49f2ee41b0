"""bzip2 blocks are found from any place of a file, whatever its reads and whatever lies behind them."""

import bz2
import random
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import available, kernels
from bertdata.errors import InputError
from bertdata.wiki.dump import bzip2_blocks
from bertdata.wiki.dump.bzip2_blocks import BLOCK_MAGIC, END_MAGIC, Block, find_blocks
from tests.support.dumps import multistream
from tests.support.memory import peak_bytes


def test_marks_are_found_across_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bz2.compress(random.Random(3).randbytes(350_000), 1)
    for size in (1, 6, 7, 33, 1000):
        monkeypatch.setattr(bzip2_blocks, "_READ_BYTES", size if size > 1 else 5)
        assert [block.offset for block in find_blocks(BytesIO(data[:20000] + data[20000:]), "test")] == [
            block.offset for block in _blocks_read_at_once(data, monkeypatch)
        ]
        if size < 33:
            data = bz2.compress(random.Random(size).randbytes(3000), 1)


def _blocks_read_at_once(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Block]:
    monkeypatch.setattr(bzip2_blocks, "_READ_BYTES", 1 << 22)
    return list(find_blocks(BytesIO(data), "test"))


@pytest.mark.skipif(not available(), reason="the kernels are not built")
@given(
    bits=st.lists(
        st.one_of(st.text("01", max_size=70), st.sampled_from([f"{BLOCK_MAGIC:048b}", f"{END_MAGIC:048b}"])),
        max_size=8,
    ).map("".join),
    start=st.integers(0, 60),
    stop=st.integers(0, 60),
)
def test_the_kernel_finds_the_marks_that_the_twin_finds(bits: str, start: int, stop: int) -> None:
    data = bytes(int(bits[place : place + 8].ljust(8, "0"), 2) for place in range(0, len(bits), 8))
    stop = min(stop, len(data))
    found = kernels.find_bzip2_marks(data, start, stop)
    assert found == sorted(bzip2_blocks.find_marks(data, start, stop))


@pytest.fixture(scope="module")
def many_streams() -> bytes:
    """Streams of one, of many and of no blocks."""
    text = random.Random(4).randbytes(1_200_000)
    return multistream(text, [1000, 1000, 500_000, 1_199_999]) + bytes(50)


@given(st.data())
def test_the_ranges_of_a_file_share_its_blocks_out(many_streams: bytes, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.lists(st.integers(1, len(many_streams)), max_size=6)))
    ranges = zip([0, *ends], [*ends, len(many_streams)], strict=True)
    shared_out = [
        block
        for start, stop in ranges
        for block in find_blocks(BytesIO(many_streams), "test", start=start)
        if block.offset < stop
    ]
    assert shared_out == list(find_blocks(BytesIO(many_streams), "test"))


def test_a_range_that_starts_at_a_block_or_just_behind_its_begin(many_streams: bytes) -> None:
    blocks = list(find_blocks(BytesIO(many_streams), "test"))
    for number, block in enumerate(blocks):
        assert list(find_blocks(BytesIO(many_streams), "test", start=block.offset)) == blocks[number:]
        behind = list(find_blocks(BytesIO(many_streams), "test", start=block.offset + 1))
        assert behind == blocks[number + 1 :]


def test_no_block_starts_at_the_end_or_in_the_zeros_behind_it(many_streams: bytes) -> None:
    padded = many_streams + bytes(9 << 20)
    for start in (len(many_streams) - 50, len(many_streams) - 55, len(many_streams), len(padded) + 7):
        assert list(find_blocks(BytesIO(padded), "test", start=start)) == []


def test_a_range_without_any_block_in_4_mib_is_an_error() -> None:
    with pytest.raises(InputError, match="test: byte 7: no bzip2 block starts within 4 MiB of here"):
        list(find_blocks(BytesIO(b"text" * (2 << 20)), "test", start=7))


class _ZerosBehind(BytesIO):
    """A file that ends with gigabytes of zeros, and counts those that are read."""

    def __init__(self, data: bytes, zeros: int) -> None:
        super().__init__(data)
        self.zeros = zeros

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert size >= 0
        if data := super().read(size):
            return data
        size = min(size, self.zeros)
        self.zeros -= size
        return bytes(size)


def test_zeros_behind_the_last_stream_are_passed_over_and_not_kept() -> None:
    # A download into a file of fixed size. One byte at a time, this took a second for each mebibyte.
    data = bz2.compress(random.Random(8).randbytes(1_000_000))
    expected = list(find_blocks(BytesIO(data), "test"))
    file = _ZerosBehind(data, 1 << 28)

    def run() -> None:
        assert list(find_blocks(file, "test")) == expected

    assert peak_bytes(run) < 64 << 20
    assert file.zeros == 0


@pytest.mark.parametrize("size", [500_000, 950_000])
def test_zeros_in_a_block_are_an_error_before_they_fill_the_memory(size: int) -> None:
    data = bz2.compress(random.Random(8).randbytes(1_000_000))[:size]
    file = _ZerosBehind(data, 1 << 28)

    def run() -> None:
        with pytest.raises(
            InputError, match="byte .*: the bzip2 block that starts here has no end within 4 MiB"
        ):
            list(find_blocks(file, "test"))

    assert peak_bytes(run) < 64 << 20
