"""Records of earlier steps (manifests and states of checkpoints), found by their md5.

A step's record cites the records of the steps before it by md5. Copies of the cited records are kept with
what the step wrote: in the folder ``sources/`` of a dataset, of a directory of parts or of a run, or in the
file ``lineage.json`` of an exported model. The steps can therefore be followed after the data have moved.
"""

from collections.abc import Mapping

from bertdata.io import storage
from bertdata.io.file_check import compute_md5

SOURCES = "sources"
"""Folder with the copies of the records of earlier steps."""


class Documents:
    """Records of steps by their md5.

    paths: path of the file that each record was read from, by the record's md5.
    """

    def __init__(self) -> None:
        self._found: dict[str, bytes] = {}
        self.paths: dict[str, str] = {}
        self._directories: set[str] = set()

    def add(self, data: bytes, path: str = "") -> str:
        """Add a record and return its md5.

        path: path of the file that the record was read from.
        """
        md5 = compute_md5(data)
        self._found.setdefault(md5, data)
        self.paths.setdefault(md5, path)
        return md5

    def add_texts(self, texts: Mapping[str, str], path: str) -> None:
        """Add the records that are kept as texts in one file, such as the file of an exported model.

        path: path of that file.
        """
        for text in texts.values():
            self.add(text.encode(), path)

    def add_directory(self, directory: str) -> None:
        """Add every record in the folder ``sources/`` of a directory. Nothing happens without the folder."""
        if directory in self._directories:
            return
        self._directories.add(directory)
        folder = storage.join(directory, SOURCES)
        for name in storage.list_files(folder):
            if name.endswith(".json"):
                path = storage.join(folder, name)
                data = storage.read_if_present(path)
                if data is not None:
                    self.add(data, path)

    def find(self, md5: str) -> bytes | None:
        """Return the record with this md5, or None if it is not at hand."""
        return self._found.get(md5)

    def explain_absence(self, md5: str, what: str, copy: str = "") -> tuple[str, bool]:
        """Return why a record is not at hand, and True if this is a fault.

        It is a fault if a copy exists but has another md5, so that it was damaged or edited.
        md5: the md5 that is cited.
        what: name of the record, such as "the manifest of the parts".
        copy: path of the file that should hold the copy, if its name does not follow from the md5.
        """
        data = storage.read_if_present(copy) if copy else None
        if data is None:
            return f"{what}, md5 {md5}, is not at hand", False
        return f"{copy}: is not {what} that is cited: found md5 {compute_md5(data)}, expected {md5}", True

    def as_texts(self) -> dict[str, str]:
        """Return all records as texts, by md5 and in the order of their md5s."""
        return {md5: self._found[md5].decode() for md5 in sorted(self._found)}

    def items(self) -> list[tuple[str, bytes]]:
        """Return the md5 and the bytes of each record, in the order of their md5s."""
        return sorted(self._found.items())
