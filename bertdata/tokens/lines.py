"""Bytes to lines, as each program's reader sees them."""

from bertdata.config.dialects import Dialect
from bertdata.io.foreign_text import universal_newlines


def normalize_newlines(data: bytes, dialect: Dialect) -> bytes:
    r"""The data with ``\n`` as its only line end.

    TensorFlow's readers (mlperf, google, graphcore) drop every carriage return; NVIDIA's reads with
    universal newlines.
    """
    if b"\r" not in data:
        return data
    return universal_newlines(data) if dialect.universal_newlines else data.replace(b"\r", b"")


def join_inputs(texts: list[bytes]) -> bytes:
    """Several inputs as one: a last line keeps its end, but no boundary between documents is added."""
    if len(texts) == 1:
        return texts[0]
    return b"".join(text if text.endswith(b"\n") or not text else text + b"\n" for text in texts)


def drop_bad_utf8(data: bytes) -> bytes:
    """The data without the bytes that are not UTF-8."""
    return data.decode("utf-8", errors="ignore").encode()
