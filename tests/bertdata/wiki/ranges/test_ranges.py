"""The ranges of a dump share its text out page by page, and what is between them is checked."""

import bz2
import gzip
import random
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from bertdata.wiki.dump.bzip2_blocks import Block, find_blocks
from bertdata.wiki.ranges import ranges as module
from bertdata.wiki.ranges.links import BlockChecksums, RangeLink, check_links
from bertdata.wiki.ranges.ranges import DumpRanges, RangeReader, recognise_dump
from tests.support.dumps import HEAD, TAIL, multistream, page

NAME = "dump.xml"


def read_ranges(data: bytes, range_bytes: int) -> tuple[list[bytes], list[RangeLink]]:
    """The text that each range owns, and its link; the last one with text owns the dump's end."""
    ranges = DumpRanges(path=NAME, bytes=len(data), kind=recognise_dump(data), range_bytes=range_bytes)
    owned, links, ends = [], [], []
    for number in range(len(ranges)):
        reader = RangeReader(ranges, number, BytesIO(data))
        owned.append(b"".join(text for text, _ in reader.read_texts()))
        links.append(reader.link)
        ends.append(reader.owns_end)
    assert sum(ends) == 1
    assert not any(owned[ends.index(True) + 1 :])
    return owned, links


def with_newlines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def check_shares(data: bytes, text: bytes, range_bytes: int) -> None:
    """The ranges own the text, each but the first from behind a page end to behind another."""
    owned, links = read_ranges(data, range_bytes)
    assert b"".join(owned) == with_newlines(text)
    for share in list(filter(None, owned))[:-1]:
        assert share.rstrip(b" \t\n").endswith(b"</page>")
    if recognise_dump(data) == "bzip2":
        check_links(NAME, links)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A dump's text: lines that may end a page, at the seams too, with newlines of every kind."""
    lines = st.sampled_from(
        [
            "<page>",
            "  </page>",
            "\t</page> ",
            "</page>",
            "</page",
            "</page>x",
            "x</page>",
            "",
            " ",
            "text " * 9,
        ]
    )
    pairs = draw(
        st.lists(st.tuples(lines, st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\r"])), max_size=40)
    )
    return "".join(line + end for line, end in pairs).encode()


@given(texts(), st.integers(1, 70), st.integers(1, 40))
def test_ranges_of_plain_xml_own_the_text_once(text: bytes, range_bytes: int, read_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ_BYTES", read_bytes)
        check_shares(text, text, range_bytes)


@given(texts(), st.lists(st.integers(0, 300), max_size=8), st.integers(4, 200))
def test_ranges_of_a_multistream_dump_own_the_text_once(
    text: bytes, cuts: list[int], range_bytes: int
) -> None:
    data = multistream(text, sorted(min(cut, len(text)) for cut in cuts))
    check_shares(data, text, range_bytes)


@pytest.fixture(scope="module")
def one_stream() -> tuple[bytes, bytes]:
    """A dump of one bzip2 stream with several blocks, and its text."""
    generator = random.Random(5)
    pages = [
        page(f"P{n}", generator.randbytes(generator.randrange(20_000)).hex(), number=n) for n in range(60)
    ]
    text = "".join([HEAD, *pages, TAIL]).replace("\n", "\r\n").encode()
    return bz2.compress(text, 1), text


@given(st.data())
def test_ranges_of_one_stream_own_the_text_once(one_stream: tuple[bytes, bytes], data: st.DataObject) -> None:
    compressed, text = one_stream
    check_shares(compressed, text, data.draw(st.integers(20_000, len(compressed) + 10)))


def test_a_page_larger_than_several_ranges_belongs_to_one() -> None:
    large = page("Large", "word " * 40_000, number=2)
    text = "".join([HEAD, page("One", "a", number=1), large, page("Three", "b", number=3), TAIL]).encode()
    owned, _ = read_ranges(text, 10_000)
    shares = [share for share in owned if share]
    assert len(owned) > 20
    assert len(shares) == 2
    assert large.encode() in shares[0]
    check_shares(text, text, 10_000)


def test_a_gzip_dump_is_one_range() -> None:
    text = "".join([HEAD, *(page(f"P{n}", "x", number=n) for n in range(50)), TAIL]).encode()
    owned, _ = read_ranges(gzip.compress(text), 100)
    assert owned == [text]


def split_block(block: Block, bits: int) -> list[Block]:
    """The block as if a magic number stood that many bits behind its begin."""
    bit = block.shift + bits
    first = block._replace(length=bits, stream_checksum=None)
    behind = {"data": block.data[bit // 8 :], "shift": bit % 8, "offset": block.offset + bit // 8}
    return [first, block._replace(length=block.length - bits, **behind)]


@pytest.mark.parametrize("number", [0, 3, -2])
@pytest.mark.parametrize("bits", [50, 4001, 300_000])
@pytest.mark.thorough_after_first
def test_a_magic_number_by_chance_within_a_block_does_not_matter(
    one_stream: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch, number: int, bits: int
) -> None:
    data, text = one_stream
    blocks = list(find_blocks(BytesIO(data), NAME))
    place = number % len(blocks)
    blocks[place : place + 1] = split_block(blocks[place], bits)
    monkeypatch.setattr(
        "bertdata.wiki.dump.bzip2_range.find_blocks",
        lambda file, name, start, engine: (block for block in blocks if block.offset >= start),
    )
    false = blocks[place + 1].offset
    for range_bytes in {max(false // parts, 50_000) for parts in (1, 2, 3)} | {100_000}:
        check_shares(data, text, range_bytes)


@pytest.mark.parametrize("place", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("range_bytes", [50_000, 150_000, 10_000_000])
def test_a_damaged_block_is_named_whoever_reads_it(
    one_stream: tuple[bytes, bytes], place: float, range_bytes: int
) -> None:
    data = bytearray(one_stream[0])
    at = int(place * len(data))
    data[at] ^= 0x10
    offset = max(block.offset for block in find_blocks(BytesIO(one_stream[0]), NAME) if block.offset <= at)
    with pytest.raises(InputError, match=r"dump.xml: byte \d+: .*damaged") as error:
        check_links(NAME, read_ranges(bytes(data), range_bytes)[1])
    assert abs(int(str(error.value).split("byte ")[1].split(":")[0]) - offset) <= 1


def test_a_truncated_stream_is_an_error(one_stream: tuple[bytes, bytes]) -> None:
    with pytest.raises(InputError, match="truncated"):
        read_ranges(one_stream[0][:-100], 100_000)


def test_a_missing_piece_between_two_ranges_is_named() -> None:
    def link(first: int | None, reached: int | None) -> RangeLink:
        return RangeLink(first=first, reached=reached)

    check_links(NAME, [link(32, 800), link(None, 800), link(800, None), link(None, None)])
    for links in (
        [link(32, 800), link(1600, None)],
        [link(32, 800), link(None, 1600)],
        [link(32, None), link(800, None)],
    ):
        with pytest.raises(InputError, match="byte 100: .*damaged"):
            check_links(NAME, links)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=80), st.data())
def test_a_stream_s_checksum_is_composed_of_its_pieces_whatever_the_cuts(
    checksums: list[int], data: st.DataObject
) -> None:
    whole = BlockChecksums()
    for checksum in checksums:
        whole = whole.add_block(checksum)
    total = 0
    cuts = sorted(data.draw(st.lists(st.integers(0, len(checksums)), max_size=4)))
    for start, stop in zip([0, *cuts], [*cuts, len(checksums)], strict=True):
        piece = BlockChecksums()
        for checksum in checksums[start:stop]:
            piece = piece.add_block(checksum)
        total = piece.compute_after(total)
    assert total == whole.compute_after(0)


def test_a_wrong_checksum_of_a_stream_over_several_ranges_is_found(one_stream: tuple[bytes, bytes]) -> None:
    data = bytearray(one_stream[0])
    data[-3] ^= 1  # of the stream's checksum, which ends in the last byte
    links = read_ranges(bytes(data), 100_000)[1]
    assert len([link for link in links if link.first is not None]) > 3
    with pytest.raises(InputError, match="checksum of the bzip2 stream"):
        check_links(NAME, links)
