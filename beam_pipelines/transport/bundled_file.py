"""Small files of the launching machine that workers elsewhere need."""

import hashlib
from typing import Any

from bertdata.io import storage


class CarriedFile(str):
    """The path of a local file; where it is unpickled, the path of a copy in that process's memory.

    So whatever holds the path takes the file along: a vocabulary by name is a file in the launching
    machine's cache, which no worker on another machine sees.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _place, (storage.base_name(self), storage.read_bytes(str(self)))


def _place(name: str, data: bytes) -> CarriedFile:
    """The path of the file, kept in this process's memory once; it is carried further, as by a scheduler."""
    path = f"memory://bertdata/{hashlib.md5(data, usedforsecurity=False).hexdigest()}/{name}"
    if not storage.exists(path):
        with storage.open_output(path) as file:
            file.write(data)
    return CarriedFile(path)
