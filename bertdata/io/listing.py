"""The files below a directory of inputs: links followed once, and everything that is left out named.

Our own directories, which are written and cleaned up, are listed by ``storage.list_files``: it follows no
link to a directory.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.io.real_paths import local_path

HIDDEN = "hidden, their names begin with . or _"
CIRCLES = "links back to a folder above them"
REPEATED = "links to what is read already"
BROKEN = "links to nothing"
SPECIAL = "no files: pipes, sockets or devices"
REFUSED = "folders that may not be read"

_FEW = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """Names of files below a directory, relative to it, sorted. left_out: the names that are not, by reason.

    folders: the names of the directories that hold them, the directory itself as an empty name.
    """

    names: list[str]
    folders: list[str]
    left_out: Mapping[str, list[str]]


def list_inputs(directory: str, *, hidden: bool = False) -> Listing:
    """List the files below the directory, also those behind links to directories, each file once.

    A file has the name by which it is reached without links, where there is one. Hidden files and folders,
    such as Spark's ``_temporary`` and Delta's ``_delta_log``, are left out unless hidden asks for them.
    StorageError for a directory that cannot be listed at all.
    """
    if (root := local_path(directory)) is None:
        return _list_remote(directory, hidden)
    walk = _Walk(root, hidden)
    with storage.naming(directory):
        walk.run()
    left_out = {reason: sorted(names) for reason, names in walk.left_out.items() if names}
    return Listing(names=sorted(walk.names), folders=sorted(walk.folders), left_out=left_out)


def left_out_lines(directory: str, left_out: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each reason for which names below the directory are left out."""
    lines = []
    for reason, all_names in left_out.items():
        names = list(all_names)
        shown = ", ".join(names[:_FEW]) + (", ..." if names[_FEW:] else "")
        lines.append(f"{directory}: left out {len(names)} ({reason}): {shown}")
    return lines


def is_hidden(name: str) -> bool:
    """Return True for a name that begins as hidden files and other programs' own folders do."""
    return name.startswith((".", "_"))


class _Walk:
    """The walk through a local directory: its own folders first, then those behind links, by name."""

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
        """Walk through everything. The name of a link is relative to the root, as all names are."""
        self._enter("", os.path.realpath(self._root))
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
        """Enter the directory behind a link, unless the walk has been there or the link leads back up."""
        above = os.path.realpath(os.path.join(self._root, os.path.dirname(name)))
        if os.path.commonpath([above, real]) == real:
            self.left_out[CIRCLES].append(f"{name}/")
        else:
            self._enter(name, real)

    def _enter(self, name: str, real: str) -> None:
        """Take the files of a directory and of the folders in it. Links wait until all of these are read."""
        if real in self._entered:
            self.left_out[REPEATED].append(f"{name}/")
            return
        self._entered.add(real)
        try:
            with os.scandir(real) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:  # another process removes it meanwhile
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
        """Take a file, unless a link has led to the folder that holds it before."""
        if real in self._files:
            self.left_out[REPEATED].append(name)
            return
        self._files.add(real)
        self.names.append(name)


def _list_remote(directory: str, hidden: bool) -> Listing:
    """List the files below a URL: there are no links. A hidden folder counts once."""
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
