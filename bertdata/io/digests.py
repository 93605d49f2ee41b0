"""MD5 of several streams at once.

Each step of MD5 needs the result of the step before it, so hashing one stream leaves most of a processor's
arithmetic units idle. The kernel in _native/io/md5.h computes up to eight streams side by side.
``Md5Streams`` is a readable version in Python with the same results.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native

STREAMS_AT_ONCE = 8
"""Number of streams that the C++ kernel hashes at the same time."""


def make_md5_streams(streams: int, engine: Engine | None = None) -> Any:
    """Return an object that computes the md5s of several streams: the C++ class, or ``Md5Streams`` in Python.

    streams: number of streams.
    engine: which of the two classes to use, None for the default engine.
    """
    kind = kernels.Md5Streams if use_native(engine or default_engine()) else Md5Streams
    return kind(streams)


class Md5Streams:
    """The md5s of several streams, in Python, with one hashlib object per stream.

    It has the methods and results of the C++ class of the same name.
    """

    def __init__(self, streams: int) -> None:
        self._digests = [hashlib.md5(usedforsecurity=False) for _ in range(streams)]

    def update(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Append ``pieces[i]`` to stream i. Pieces may be empty and of different lengths."""
        if len(pieces) != len(self._digests):
            raise ValueError(f"pieces: expected one for each of {len(self._digests)} streams")
        for digest, piece in zip(self._digests, pieces, strict=True):
            digest.update(piece)

    def digests(self) -> list[bytes]:
        """Return the md5 of each stream's bytes so far, as 16 bytes."""
        return [digest.digest() for digest in self._digests]
