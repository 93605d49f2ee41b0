"""md5s of several streams: the kernel's are hashlib's, however long the pieces and however many streams."""

import hashlib
import random
from pathlib import Path

import pytest

from bertdata._native import kernels
from bertdata.errors import MissingInputError
from bertdata.io.digests import Md5Streams, make_md5_streams
from bertdata.io.file_check import compute_file_md5s

RFC_1321 = {
    b"": "d41d8cd98f00b204e9800998ecf8427e",
    b"a": "0cc175b9c0f1b6a831c399e269772661",
    b"abc": "900150983cd24fb0d6963f7d28e17f72",
    b"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
    b"abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "d174ab98d277d9f5a5611c2c9f419d9f",
    b"1234567890" * 8: "57edf4a22be3c955ac49da2e2107b67a",
}
"""The test suite of RFC 1321."""


@pytest.mark.parametrize("kind", [Md5Streams, kernels.Md5Streams])
def test_the_digests_are_those_of_the_standard(kind):
    streams = kind(len(RFC_1321))
    streams.update(list(RFC_1321))
    assert [digest.hex() for digest in streams.digests()] == list(RFC_1321.values())


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 20])
def test_streams_that_grow_unevenly_have_the_digests_of_hashlib(count):
    drawn = random.Random(count)
    whole, streams = [bytearray() for _ in range(count)], make_md5_streams(count, "native")
    for _ in range(40):
        longest = drawn.choice((0, 1, 63, 64, 65, 130, 5000))
        pieces = [drawn.randbytes(drawn.randint(0, longest)) for _ in range(count)]
        streams.update(pieces)
        for stream, piece in zip(whole, pieces, strict=True):
            stream += piece
        assert streams.digests() == [hashlib.md5(stream).digest() for stream in whole]


def test_lengths_around_a_block_have_the_digests_of_hashlib():
    texts = [b"\xa5" * length for length in range(200)]
    streams = make_md5_streams(len(texts), "native")
    streams.update(texts)
    assert streams.digests() == [hashlib.md5(text).digest() for text in texts]


@pytest.mark.parametrize("kind", [Md5Streams, kernels.Md5Streams])
def test_a_piece_for_each_stream_is_needed(kind):
    with pytest.raises(ValueError, match="pieces: expected one for each of 3 streams"):
        kind(3).update([b"a", b"b"])


def test_files_of_different_sizes_are_read_side_by_side(tmp_path: Path):
    texts = [
        bytes([number]) * size for number, size in enumerate((0, 1, 1 << 17, 300_000, 64, 5, 6, 7, 8, 9))
    ]
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    assert compute_file_md5s(list(map(str, paths))) == [hashlib.md5(text).hexdigest() for text in texts]
    assert compute_file_md5s([]) == []
    with pytest.raises(MissingInputError, match="absent: no such file"):
        compute_file_md5s([str(paths[0]), str(tmp_path / "absent")])
