"""Records of earlier steps (manifests and states of checkpoints), found by their md5.

A step's record cites the records of the steps before it by md5. Copies of the cited records are kept with
what the step wrote: in the folder ``sources/`` of a dataset, of a directory of parts or of a run, or in the
file ``lineage.json`` of an exported model. The steps can therefore be followed after the data have moved.
"""

import re
from collections.abc import Collection, Mapping

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json

SOURCES = "sources"
"""Folder with the copies of the records of earlier steps."""

_NAMED_BY_MD5 = re.compile(r"([0-9a-f]{32})\.json")
"""File name of a copy in the ``sources/`` of a run, which tells the md5 that the copy must have."""


class RecordDocuments:
    """Records of steps by their md5.

    paths: path of the file that each record was read from, by the record's md5.
    """

    def __init__(self) -> None:
        self._found: dict[str, bytes] = {}
        self.paths: dict[str, str] = {}
        self._directories: set[str] = set()
        self._copies: dict[str, str] = {}
        self._damaged: dict[str, str] = {}

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
        """Add every record in the folder ``sources/`` of a directory. Nothing happens without the folder.

        Damaged copies are left out: files that are no JSON objects, and files whose name is another md5 than
        they have. The reader of the step that needs such a record names the fault, and
        ``list_damaged_copies`` lists those that no step needs.
        """
        if directory in self._directories:
            return
        self._directories.add(directory)
        folder = storage.join(directory, SOURCES)
        for name in storage.list_files(folder):
            if name.endswith(".json"):
                self._add_copy(storage.join(folder, name), name)

    def _add_copy(self, path: str, name: str) -> None:
        """Add the record in a file of a folder ``sources/``.

        name: name of the file in the folder.
        """
        data = storage.read_if_present(path)
        if data is None:
            return
        if (match := _NAMED_BY_MD5.fullmatch(name)) is not None:
            self._copies[match[1]] = path
            if (found := compute_md5(data)) != match[1]:
                self._damaged[match[1]] = f"{path}: is damaged: found md5 {found}, expected {match[1]}"
                return
        try:
            parse_json(data, path)
        except ManifestError:
            return
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
        copy = copy or self._copies.get(md5, "")
        data = storage.read_if_present(copy) if copy else None
        if data is None:
            return f"{what}, md5 {md5}, is not at hand", False
        return f"{copy}: is not {what} that is cited: found md5 {compute_md5(data)}, expected {md5}", True

    def list_damaged_copies(self, cited: Collection[str]) -> list[str]:
        """Return a fault for each copy that no longer has the md5 of its name.

        cited: md5s that steps cite. Copies of these records are left out, because ``explain_absence`` names
            their faults.
        """
        return [
            fault
            for md5, fault in sorted(self._damaged.items())
            if md5 not in cited and md5 not in self._found
        ]

    def as_texts(self) -> dict[str, str]:
        """Return all records as texts, by md5 and in the order of their md5s."""
        return {md5: self._found[md5].decode() for md5 in sorted(self._found)}

    def items(self) -> list[tuple[str, bytes]]:
        """Return the md5 and the bytes of each record, in the order of their md5s."""
        return sorted(self._found.items())


def add_manifest(path: str, documents: RecordDocuments) -> str:
    """Add a dataset's manifest and the manifests that the dataset keeps to the documents. Return its md5.

    path: the dataset's directory, or a manifest or shards in it.
    """
    directory = path if storage.is_directory(path) else storage.get_parent(path)
    manifest = storage.join(directory, MANIFEST_NAME)
    data = storage.read_bytes(manifest)
    documents.add_directory(directory)
    return documents.add(data, manifest)
