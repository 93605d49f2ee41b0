"""The prefix of a bundle's files, found from any path that people give for it."""

import re

from bertdata.errors import DataError
from bertdata.io import storage

_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
_STATE = re.compile(r'^model_checkpoint_path: "([^\0]*)"$', re.MULTILINE)


def find_prefix(path: str) -> str | None:
    """The prefix: the path itself, the path of one of its files, or the newest one in a directory.

    None where there is no bundle. DataError where a directory holds several, and no file ``checkpoint``
    that names one of them.
    """
    if not storage.is_directory(path):
        prefix = _ENDING.sub("", path)
        return prefix if storage.exists(f"{prefix}.index") else None
    state = storage.join(path, "checkpoint")
    is_file = storage.exists(state) and not storage.is_directory(state)
    if is_file and (named := _STATE.search(storage.read_bytes(state).decode(errors="replace"))):
        prefix = storage.join(path, storage.base_name(named[1]))
        if storage.exists(f"{prefix}.index"):
            return prefix
    names = [name for name in storage.list_files(path) if name.endswith(".index") and "/" not in name]
    if len(names) > 1:
        several = f"{len(names)} TensorFlow checkpoints, the first {names[0]}"
        raise DataError(f"{path}: holds {several}; name one of them without its ending")
    return storage.join(path, names[0].removesuffix(".index")) if names else None
