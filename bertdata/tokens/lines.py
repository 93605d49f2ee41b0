"""Divides bytes into lines in the same way as other programs (Google's and NVIDIA's, for example)."""

from bertdata.config.dialects import Dialect
from bertdata.io.foreign_text import replace_line_ends


def normalize_newlines(data: bytes, dialect: Dialect) -> bytes:
    r"""Return the data with ``\n`` as the only line end, as the program of the dialect reads them.

    TensorFlow's readers (dialects mlperf, google and graphcore) drop every carriage return. NVIDIA's program
    treats a carriage return as a line end.
    """
    if b"\r" not in data:
        return data
    return replace_line_ends(data) if dialect.universal_newlines else data.replace(b"\r", b"")


def join_inputs(texts: list[bytes]) -> bytes:
    """Join several texts to one text.

    A line end is added to a text whose last line has none. No boundary between documents is added.
    """
    if len(texts) == 1:
        return texts[0]
    return b"".join(text if text.endswith(b"\n") or not text else text + b"\n" for text in texts)


def drop_bad_utf8(data: bytes) -> bytes:
    """Remove the bytes that are not valid UTF-8."""
    return data.decode("utf-8", errors="ignore").encode()
