"""Small local files whose contents are sent to the workers inside the pickled job."""

import hashlib
from typing import Any

from bertdata.io import storage
from bertdata.tokens.files import TOKENIZER_NAME
from bertdata.tokens.tokenizer_json import read_tokenizer_bytes


class BundledFile(str):
    """Path of a local file. If the path is pickled, the pickle includes the contents of the file.

    Unpickling stores the contents in the memory of the worker process, and gives a ``memory://`` path to
    them. This is how workers on other machines read a vocabulary file, which lies in a cache of the launching
    machine.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle stores: the function ``_unpack`` with the file's name and contents as its
        arguments.
        """
        path = str(self)
        # If the path is a directory of a model, only its tokeniser is sent, as a single tokenizer.json.
        if storage.is_directory(path):
            return _unpack, (TOKENIZER_NAME, read_tokenizer_bytes(path))
        return _unpack, (storage.get_base_name(path), storage.read_bytes(path))


def _unpack(name: str, data: bytes) -> BundledFile:
    """Store the contents in the memory of this process, unless they are there, and return their path.

    The path has the form ``memory://...``. It can be pickled again, which schedulers do.
    """
    path = f"memory://bertdata/{hashlib.md5(data, usedforsecurity=False).hexdigest()}/{name}"
    if not storage.exists(path):
        with storage.open_output(path) as file:
            file.write(data)
    return BundledFile(path)
