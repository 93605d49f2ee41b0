"""Small local files that are sent to the workers inside the pickled job."""

import hashlib
from typing import Any

from bertdata.io import storage
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.tokenizer_json import read_tokenizer_bytes


class BundledFile(str):
    """The path of a local file that is pickled together with the file's contents.

    Unpickling stores the contents in the process's memory and gives a ``memory://`` path to them. A
    vocabulary file lies in the launching machine's cache, which workers on other machines cannot read.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file's name and contents, for ``_unpack``."""
        path = str(self)
        # for a model's directory, send its tokeniser as a single tokenizer.json
        if storage.is_directory(path):
            return _unpack, (TOKENIZER_NAME, read_tokenizer_bytes(path))
        return _unpack, (storage.get_base_name(path), storage.read_bytes(path))


def _unpack(name: str, data: bytes) -> BundledFile:
    """Store the contents in this process's memory, once, and return the file's ``memory://`` path.

    The result can be pickled again, as schedulers do.
    """
    path = f"memory://bertdata/{hashlib.md5(data, usedforsecurity=False).hexdigest()}/{name}"
    if not storage.exists(path):
        with storage.open_output(path) as file:
            file.write(data)
    return BundledFile(path)
