"""Joins the template definitions of all ranges to a file, and makes this file available on every machine."""

import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_check import HashingSink, compute_file_md5
from bertdata.wiki.template_file import TemplateFileWriter, read_definitions

_COPY_BYTES = 8 << 20
_fetching = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedTemplates:
    """Location of the template file that all workers read: its path or URL, and its md5."""

    path: str
    md5: str


def write_templates(paths: Iterable[str], make_path: Callable[[str], str]) -> SharedTemplates:
    """Join the template files of the ranges, in order, and write the result.

    paths: path of the template file of each range.
    make_path: function that returns the path of the result for its md5. A worker keeps the file mapped into
        memory as long as it runs, so files with different contents need different names.
    """
    with TemplateFileWriter() as templates:
        for path in paths:
            for definition in read_definitions(memoryview(storage.read_bytes(path))):
                templates.add(*definition)
        # The name of the file contains the md5 of its content. Write the file twice, the first time only to
        # compute its md5.
        digest = HashingSink(_discard)
        templates.write(cast(BinaryIO, digest))
        shared = SharedTemplates(path=make_path(digest.md5), md5=digest.md5)
        with storage.open_output(shared.path, flushes=False) as file:
            templates.write(file)
    return shared


def _discard(data: object) -> None:
    """Do nothing with the data. They are only hashed."""
    pass


def fetch_templates(shared: SharedTemplates) -> str:
    """Make the template file available on this machine, and return its local path.

    A remote file is copied once in each process.

    Raises InputError if the md5 of the file is not the expected md5.
    """
    with _fetching:
        return _fetch_file(shared).path


@lru_cache(maxsize=1)
def _fetch_file(shared: SharedTemplates) -> "_LocalFile":
    """Return the local template file, which is cached in the process."""
    return _LocalFile(shared)


class _LocalFile:
    """Template file on this machine.

    If it is the copy of a remote file, it is deleted when the process ends.
    """

    def __init__(self, shared: SharedTemplates) -> None:
        self.path = shared.path
        if storage.is_remote(shared.path):
            self._directory = tempfile.TemporaryDirectory(prefix="bertdata-")
            self.path = str(Path(self._directory.name, storage.get_base_name(shared.path)))
            with (
                storage.open_input(shared.path) as remote,
                storage.open_output(self.path, flushes=False) as copy,
            ):
                while data := remote.read(_COPY_BYTES):
                    copy.write(data)
        if (found := compute_file_md5(self.path)) != shared.md5:
            raise InputError(
                f"{shared.path}: the templates were changed since the first pass: md5 {found}, expected "
                f"{shared.md5}; run the same command again"
            )
