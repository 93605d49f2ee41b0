"""Decompressing bzip2: Python's own text, with either engine; damage is an error."""

import bz2
import random
from collections.abc import Iterator
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import Engine, available
from bertdata.errors import InputError
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.dump import bzip2
from bertdata.wiki.dump.bzip2 import NoText, decompress_block
from bertdata.wiki.dump.bzip2_blocks import Block, find_blocks
from tests.support.memory import peak_bytes

WORDS = "Water runs down the old stone steps and out into the garden below. "
ENGINES: list[Engine] = ["native", "python"] if available() else ["python"]
NATIVE = pytest.mark.skipif(not available(), reason="the kernels are not built")


def read(data: bytes, engine: Engine) -> bytes:
    """The text of a bzip2 file."""
    with ProcessPool(1) as pool:
        return b"".join(text for text, _ in bzip2.read_bzip2(BytesIO(data), "test", pool, engine))


def outcome(data: bytes, engine: Engine) -> bytes | str:
    """The text of a bzip2 file, or what is wrong with it."""
    try:
        return read(data, engine)
    except InputError as error:
        return str(error)


def runs(lengths: list[int]) -> bytes:
    return b"".join(bytes([65 + i % 3]) * length for i, length in enumerate(lengths))


random_bytes = st.builds(
    lambda seed, size: random.Random(seed).randbytes(size), st.integers(), st.integers(0, 40_000)
)
skewed_bytes = st.builds(
    lambda seed, size, rate: bytes(
        min(255, int(random.Random(seed + i).expovariate(rate))) for i in range(size)
    ),
    st.integers(0, 1 << 30),
    st.integers(0, 3000),
    st.sampled_from([0.01, 0.1, 0.5, 2.0]),
)
texts = st.one_of(
    st.binary(max_size=300),
    random_bytes,
    skewed_bytes,
    st.lists(st.sampled_from([1, 3, 4, 5, 6, 100, 254, 255, 256, 258, 259, 260, 263, 519]), max_size=20).map(
        runs
    ),
    st.builds(lambda unit, times: unit * times, st.binary(min_size=1, max_size=40), st.integers(0, 3000)),
    st.text(max_size=2000).map(lambda text: text.encode(errors="replace")),
)
files = st.lists(st.tuples(texts, st.integers(1, 9)), min_size=1, max_size=3)


@pytest.mark.parametrize("engine", ENGINES)
@given(streams=files)
def test_streams_are_read_as_pythons_bz2_reads_them(engine: Engine, streams: list[tuple[bytes, int]]) -> None:
    data = b"".join(bz2.compress(text, level) for text, level in streams)
    assert read(data, engine) == b"".join(text for text, _ in streams)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("level", [1, *(pytest.param(level, marks=pytest.mark.thorough) for level in (5, 9))])
def test_texts_of_several_blocks_are_joined(engine: Engine, level: int) -> None:
    """A level's block has 100 kB times its number."""
    draw = random.Random(level)
    for text in (
        draw.randbytes(level * 211_000),
        WORDS.encode() * (level * 3400),
        b"ab" * (level * 67_000),
        bytes(draw.choices(range(256), [1 / (1 + n) ** 2 for n in range(256)], k=level * 111_000)),
        b"".join(bytes([draw.randrange(256)]) * draw.randrange(1, 700) for _ in range(level * 667)),
    ):
        assert read(bz2.compress(text, level), engine) == text


@NATIVE
@given(text=texts, flips=st.lists(st.tuples(st.booleans(), st.integers(0, 1 << 30)), min_size=1, max_size=3))
def test_damage_ends_with_either_engine_alike(text: bytes, flips: list[tuple[bool, int]]) -> None:
    data = bytearray(bz2.compress(text))
    for near_the_begin, place in flips:
        bit = place % (8 * min(len(data), 300) if near_the_begin else 8 * len(data))
        data[bit // 8] ^= 128 >> bit % 8
    assert outcome(bytes(data), "native") == outcome(bytes(data), "python")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("streams", [2, 3])
def test_no_stream_vanishes_where_a_bit_of_its_mark_is_damaged(engine: Engine, streams: int) -> None:
    """Streams of equal content have equal checksums, which cannot tell that one is missing."""
    stream = bz2.compress(b"equal content")
    header, magic = 4, 6
    for place in range(8 * (len(stream) + header), 8 * (len(stream) + header + magic)):
        data = bytearray(stream * streams)
        data[place // 8] ^= 128 >> place % 8
        found = outcome(bytes(data), engine)
        assert isinstance(found, str)
        assert found.startswith("test: byte ")


@NATIVE
@given(text=texts, rest=st.integers(0, 1 << 30))
def test_truncation_ends_with_either_engine_alike(text: bytes, rest: int) -> None:
    data = bz2.compress(text)
    data = data[: rest % len(data)]
    assert outcome(data, "native") == outcome(data, "python")


@NATIVE
@given(data=st.binary(max_size=400), first=st.integers(0, 1 << 64 - 1), end=st.integers(0, 3300))
def test_the_kernel_refuses_whatever_is_no_block(data: bytes, first: int, end: int) -> None:
    from bertdata._native import kernels

    magic = bytes.fromhex("314159265359")
    assert kernels.decompress_bzip2_block(data, first, end, 1 << 20) is None
    assert kernels.decompress_bzip2_block(magic + data, 0, 8 * (len(data) + 6), 1 << 20) is None
    assert kernels.decompress_bzip2_block(magic + data, first % 8, end, 1 << 20) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_of_many_megabytes_is_read_in_pieces(engine: Engine) -> None:
    data = bz2.compress(bytes(40 << 20)) + bz2.compress(b"behind")
    sizes: list[int] = []

    def run() -> None:
        with ProcessPool(1) as pool:
            sizes.extend(len(text) for text, _ in bzip2.read_bzip2(BytesIO(data), "test", pool, engine))

    assert peak_bytes(run) < 16 << 20
    assert sum(sizes) == (40 << 20) + 6
    assert max(sizes) <= 1 << 20


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_of_many_megabytes_with_a_wrong_checksum_gives_no_text(engine: Engine) -> None:
    data = bytearray(bz2.compress(bytes(40 << 20)))
    data[12] ^= 1  # in the block's checksum
    with ProcessPool(1) as pool:
        texts = bzip2.read_bzip2(BytesIO(bytes(data)), "test", pool, engine)
        with pytest.raises(InputError, match="byte 4: the bzip2 block that starts here is damaged"):
            next(texts)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_randomised_block_is_read(engine: Engine) -> None:
    # Randomising changes the 618th byte first: a shorter block is the same but for the flag.
    data = bytearray(bz2.compress(WORDS.encode()))
    data[14] |= 128
    assert bz2.decompress(bytes(data)) == WORDS.encode()
    assert read(bytes(data), engine) == WORDS.encode()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_with_bits_behind_its_end_is_damaged(engine: Engine) -> None:
    (block,) = find_blocks(BytesIO(bz2.compress(WORDS.encode())), "test")
    assert decompress_block(engine, block) == WORDS.encode()
    for length in (0, 79, 80, block.length - 1, block.length + 1, block.length + 8):
        longer = Block(data=block.data + b"\0\0", shift=block.shift, length=length, offset=4, end=block.end)
        assert decompress_block(engine, longer) is NoText.DAMAGED


@pytest.mark.parametrize("engine", ENGINES)
def test_a_block_whose_data_look_like_a_block_start_is_read_whole(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random.Random(1).randbytes(250_000)
    data = bz2.compress(text, 1)

    def with_false_marks(file: BytesIO, name: str, engine: Engine) -> Iterator[Block]:
        for block in find_blocks(file, name, engine=engine):
            cut = block.length // 3
            yield _part(block, 0, cut, last=False)
            yield _part(block, cut, block.length, last=True)

    monkeypatch.setattr(bzip2, "find_blocks", with_false_marks)
    assert read(data, engine) == text


def _part(block: Block, start: int, stop: int, *, last: bool) -> Block:
    bit = block.shift + start
    return Block(
        data=block.data[bit // 8 : (block.shift + stop + 7) // 8],
        shift=bit % 8,
        length=stop - start,
        offset=block.offset + bit // 8,
        end=block.end,
        stream_checksum=block.stream_checksum if last else None,
    )


def test_data_behind_zeros_are_an_error() -> None:
    data = bz2.compress(WORDS.encode())
    for zeros in (100, 9 << 20):
        with pytest.raises(InputError, match="download it again|no bzip2 stream starts here"):
            read(data + bytes(zeros) + data, "python")
