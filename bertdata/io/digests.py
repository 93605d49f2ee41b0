"""md5s of several streams that grow together, in a kernel that hashes up to eight of them at a time.

MD5 is one long chain of operations, so a processor has time for several of them. Twin of
_native/io/md5.h.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native

AT_A_TIME = 8
"""Streams that the kernel hashes at a time."""


def md5_streams(streams: int, engine: Engine | None = None) -> Any:
    """The md5s of so many streams, all empty: an ``Md5Streams``, or the kernel's."""
    kind = kernels.Md5Streams if use_native(engine or default_engine()) else Md5Streams
    return kind(streams)


class Md5Streams:
    """The specification: a digest of hashlib for each stream."""

    def __init__(self, streams: int) -> None:
        self._digests = [hashlib.md5(usedforsecurity=False) for _ in range(streams)]

    def update(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Append a piece to each stream. Some may be empty."""
        if len(pieces) != len(self._digests):
            raise ValueError(f"pieces: expected one for each of {len(self._digests)} streams")
        for digest, piece in zip(self._digests, pieces, strict=True):
            digest.update(piece)

    def digests(self) -> list[bytes]:
        """The digest of each stream so far."""
        return [digest.digest() for digest in self._digests]
