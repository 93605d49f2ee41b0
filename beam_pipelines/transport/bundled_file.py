"""Small local files that a job brings to its workers."""

import hashlib
from typing import Any

from bertdata.io import storage
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.tokenizer_json import tokenizer_bytes


class BundledFile(str):
    """The path of a local file, pickled together with the file's bytes.

    Unpickled, it is the path of a copy in that process's memory. A vocabulary by name is a file in the
    launching machine's cache, which no worker on another machine can read.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        path = str(self)
        if storage.is_directory(path):  # a model's, of whose files a tokenizer.json is made
            return _unpack, (TOKENIZER_NAME, tokenizer_bytes(path))
        return _unpack, (storage.base_name(path), storage.read_bytes(path))


def _unpack(name: str, data: bytes) -> BundledFile:
    """Keep the file in this process's memory, once. The result can be pickled again, as schedulers do."""
    path = f"memory://bertdata/{hashlib.md5(data, usedforsecurity=False).hexdigest()}/{name}"
    if not storage.exists(path):
        with storage.open_output(path) as file:
            file.write(data)
    return BundledFile(path)
