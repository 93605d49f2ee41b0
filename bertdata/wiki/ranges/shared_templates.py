"""Join the ranges' template definitions into one file, and make it available on every machine."""

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
    """Reference to the template file that all workers read: its path or URL, and its md5."""

    path: str
    md5: str


def write_templates(paths: Iterable[str], make_path: Callable[[str], str]) -> SharedTemplates:
    """Join the template files of the ranges, in order, and write the result.

    make_path: function that returns the path of the output for an md5. Every worker keeps the file mapped
    into memory until the worker ends, so different contents need different names.
    """
    with TemplateFileWriter() as templates:
        for path in paths:
            for definition in read_definitions(memoryview(storage.read_bytes(path))):
                templates.add(*definition)
        # The name depends on the content, so the file is written twice: first only to compute its md5.
        digest = HashingSink(_discard)
        templates.write(cast(BinaryIO, digest))
        shared = SharedTemplates(path=make_path(digest.md5), md5=digest.md5)
        with storage.open_output(shared.path) as file:
            templates.write(file)
    return shared


def _discard(data: object) -> None:
    pass


def fetch_templates(shared: SharedTemplates) -> str:
    """Make the template file available on this machine, and return its local path.

    A remote file is copied once per process. Raises InputError if the file has another md5 than expected.
    """
    with _fetching:
        return _fetch_file(shared).path


@lru_cache(maxsize=1)
def _fetch_file(shared: SharedTemplates) -> "_LocalFile":
    return _LocalFile(shared)


class _LocalFile:
    """Template file on this machine. The copy of a remote file is deleted when the process ends."""

    def __init__(self, shared: SharedTemplates) -> None:
        self.path = shared.path
        if storage.is_remote(shared.path):
            self._directory = tempfile.TemporaryDirectory(prefix="bertdata-")
            self.path = str(Path(self._directory.name, storage.get_base_name(shared.path)))
            with storage.open_input(shared.path) as remote, storage.open_output(self.path) as copy:
                while data := remote.read(_COPY_BYTES):
                    copy.write(data)
        if (found := compute_file_md5(self.path)) != shared.md5:
            raise InputError(
                f"{shared.path}: the templates were changed since the first pass: md5 {found}, expected "
                f"{shared.md5}; run the same command again"
            )
