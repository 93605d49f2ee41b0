"""Divides bytes into lines as the programs do that bertdata imitates, such as Google's and NVIDIA's."""

from bertdata.config.dialects import Dialect
from bertdata.io.foreign_text import replace_line_ends


def normalize_newlines(data: bytes, dialect: Dialect) -> bytes:
    r"""Return the data with ``\n`` as the only line end.

    TensorFlow's readers (dialects mlperf, google, graphcore) drop every carriage return. NVIDIA's program
    treats a carriage return as a line end.
    """
    if b"\r" not in data:
        return data
    return replace_line_ends(data) if dialect.universal_newlines else data.replace(b"\r", b"")


def join_inputs(texts: list[bytes]) -> bytes:
    """Join several inputs. A missing line end is added, but no boundary between documents."""
    if len(texts) == 1:
        return texts[0]
    return b"".join(text if text.endswith(b"\n") or not text else text + b"\n" for text in texts)


def drop_bad_utf8(data: bytes) -> bytes:
    """Remove the bytes that are not valid UTF-8."""
    return data.decode("utf-8", errors="ignore").encode()
