"""Compute CRC-32C (Castagnoli) checksums, and the masked form that TFRecord files store.

This is the readable Python version of _native/shards/crc32c.h.
"""

from typing import Any

from bertdata._native import available, kernels

_POLYNOMIAL = 0x82F63B78


def _make_table_entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(_make_table_entry(byte) for byte in range(256))


def compute_crc32c(data: bytes) -> int:
    """Return the CRC-32C checksum of the data, as RFC 3720 defines it.

    For example, ``compute_crc32c(b"123456789") == 0xE3069283``.
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def compute_masked_crc32c(data: bytes) -> int:
    """Return the checksum of the data in the masked form that TFRecord files store."""
    return mask_checksum(compute_crc32c(data))


def mask_checksum(crc: int) -> int:
    """Convert a CRC-32C to the masked form that TFRecord files store: rotated right by 15 bits, plus a
    constant.

    A checksum of data that itself contains checksums is weak. The masked form avoids this.
    """
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def compute_masked_checksum(data: Any) -> int:
    """Return the same as ``compute_masked_crc32c``, computed by the C++ kernel if it is available."""
    return mask_checksum(kernels.crc32c(data) if available() else compute_crc32c(bytes(data)))
