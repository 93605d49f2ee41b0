"""Listing of input directories.

Symbolic links are followed, but never twice to the same place. Every name that is left out is reported.
Output directories are listed by ``storage.list_files`` instead, which follows no links to directories.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.io.real_paths import find_local_path

HIDDEN = "hidden, their names begin with . or _"
CIRCLES = "links back to a folder above them"
REPEATED = "links to what is read already"
BROKEN = "links to nothing"
SPECIAL = "no files: pipes, sockets or devices"
REFUSED = "folders that may not be read"

_FEW = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The files below a directory.

    names: the files' names, sorted and relative to the directory.
    folders: names of the directories that hold the files. The empty name is the listed directory itself.
    left_out: for each reason (HIDDEN, CIRCLES ...), the names that are not in the listing for this reason.
    """

    names: list[str]
    folders: list[str]
    left_out: Mapping[str, list[str]]


def list_inputs(directory: str, *, hidden: bool = False) -> Listing:
    """List the files below a directory, each file once, including those behind links to directories.

    A file that is reachable both directly and through a link gets its direct name. Raises StorageError if the
    directory itself cannot be listed.

    hidden: also list hidden files and folders, such as Spark's ``_temporary`` or Delta's ``_delta_log``.
    """
    if (root := find_local_path(directory)) is None:
        return _list_remote(directory, hidden)
    walk = _DirectoryWalk(root, hidden)
    with storage.name_path_in_errors(directory):
        walk.run()
    left_out = {reason: sorted(names) for reason, names in walk.left_out.items() if names}
    return Listing(names=sorted(walk.names), folders=sorted(walk.folders), left_out=left_out)


def describe_left_out(directory: str, left_out: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each reason why names were left out: how many names, and the first few of them."""
    lines = []
    for reason, all_names in left_out.items():
        names = list(all_names)
        shown = ", ".join(names[:_FEW]) + (", ..." if names[_FEW:] else "")
        lines.append(f"{directory}: left out {len(names)} ({reason}): {shown}")
    return lines


def is_hidden(name: str) -> bool:
    """Return True if the name begins with ``.`` or ``_``.

    Such names belong to hidden files, and to internal folders of programs such as Spark.
    """
    return name.startswith((".", "_"))


class _DirectoryWalk:
    """A walk through a local directory.

    It visits all real folders first, then the links, so that a file that is reachable both ways gets its
    direct name.
    """

    def __init__(self, root: str, hidden: bool) -> None:
        self.names: list[str] = []
        self.folders: list[str] = []
        self.left_out: dict[str, list[str]] = {
            reason: [] for reason in (HIDDEN, CIRCLES, REPEATED, BROKEN, SPECIAL, REFUSED)
        }
        self._root = root
        self._hidden = hidden
        self._entered: set[str] = set()
        self._files: set[str] = set()
        self._links: list[tuple[str, str]] = []

    def run(self) -> None:
        """Walk through the directory, and through all directories to which links in it lead."""
        self._enter("", os.path.realpath(self._root))
        # A link may lead to a folder with more links, which _enter appends to the same queue.
        while self._links:
            name, real = self._links.pop(0)
            if os.path.isdir(real):
                self._follow(name, real)
            elif real in self._files:
                self.left_out[REPEATED].append(name)
            elif os.path.isfile(real):
                self._files.add(real)
                self.names.append(name)
            else:
                self.left_out[SPECIAL if os.path.exists(real) else BROKEN].append(name)

    def _follow(self, name: str, real: str) -> None:
        """Enter the directory behind a link, unless it was already visited or contains the link."""
        # in/a/up -> in would lead to in/a/up/a/up/a ... without end
        above = os.path.realpath(os.path.join(self._root, os.path.dirname(name)))
        if os.path.commonpath([above, real]) == real:
            self.left_out[CIRCLES].append(f"{name}/")
        else:
            self._enter(name, real)

    def _enter(self, name: str, real: str) -> None:
        """Add the files of a directory and of its real sub-directories. Links are queued for later."""
        if real in self._entered:
            self.left_out[REPEATED].append(f"{name}/")
            return
        self._entered.add(real)
        try:
            with os.scandir(real) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:  # another process has just removed it
            return
        except PermissionError:
            if not name:
                raise
            self.left_out[REFUSED].append(f"{name}/")
            return
        self.folders.append(name)
        links = []
        for entry in found:
            path = f"{name}/{entry.name}" if name else entry.name
            if not self._hidden and is_hidden(entry.name):
                self.left_out[HIDDEN].append(f"{path}/" if entry.is_dir() else path)
            elif entry.is_symlink():
                links.append((path, os.path.realpath(entry.path)))
            elif entry.is_dir():
                self._enter(path, entry.path)
            elif entry.is_file():
                self._take(path, entry.path)
            else:
                self.left_out[SPECIAL].append(path)
        self._links += links

    def _take(self, name: str, real: str) -> None:
        """Add a file to the listing, unless the walk has already reached it through a link."""
        if real in self._files:
            self.left_out[REPEATED].append(name)
            return
        self._files.add(real)
        self.names.append(name)


def _list_remote(directory: str, hidden: bool) -> Listing:
    """List the files below a URL, where there are no links.

    A hidden folder is reported once, not file by file.
    """
    names: list[str] = []
    out: dict[str, None] = {}
    for name in storage.list_files(directory):
        parts = name.split("/")
        first = next((number for number, part in enumerate(parts, 1) if is_hidden(part)), None)
        if hidden or first is None:
            names.append(name)
        else:
            out["/".join(parts[:first]) + ("/" if first < len(parts) else "")] = None
    folders = {"", *(name.rpartition("/")[0] for name in names)}
    left_out = {HIDDEN: list(out)} if out else {}
    return Listing(names=names, folders=sorted(folders), left_out=left_out)
