"""Masked CRC-32C of any buffer, by the kernel where it was built. TensorFlow's files carry it."""

from typing import Any

from bertdata._native import available, kernels
from bertdata.shards.crc32c import crc32c, mask


def masked(data: Any) -> int:
    """The masked checksum of a buffer."""
    return mask(kernels.crc32c(data) if available() else crc32c(bytes(data)))
