"""Bytes of an open file: mapped into memory where it is a local file, else read."""

import mmap
from contextlib import suppress
from typing import IO, Any


def mapped(file: IO[bytes]) -> Any:
    """A buffer of the file's bytes."""
    with suppress(OSError, ValueError, AttributeError):  # no descriptor, or an empty file
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    file.seek(0)
    return file.read()
