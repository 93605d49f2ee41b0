"""Expansion of path patterns, with the same rules for local files and buckets.

Patterns, and what they match in a directory ``in``::

    in/*.txt        in/a.txt
    in/**/*.txt     in/a.txt in/x/b.txt in/x/y/c.txt     (``**`` matches any number of folders, also none)
    in/**           all files below in

``*``, ``?`` and ``[`` do not match ``/``. As in a shell, a name that begins with ``.`` is matched only by a
pattern that begins with ``.`` too. ``**`` follows a link to a directory only if it does not lead to a
directory that was visited before, like the directory listing in ``listing``.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from bertdata.errors import MissingInputError
from bertdata.io import storage
from bertdata.io.listing import list_inputs
from bertdata.io.remote import find_missing_bucket, open_file_system

LONGEST_PATTERN = 4096
"""Most characters of a pattern, as many as Linux allows for a path. Python's translation of a pattern takes
time in the square of its length if many ``[`` are not closed.
"""

_ANY_FOLDERS = "**"
_MAGIC = re.compile(r"[*?[]")


def expand_patterns(patterns: Sequence[str]) -> list[str]:
    """Return the paths that match the patterns, sorted, each path once.

    An existing path is taken literally, even if it contains ``*``. Raises MissingInputError if a pattern
    matches nothing.
    """
    paths: set[str] = set()
    for pattern in patterns:
        found = [pattern] if storage.exists(pattern) else find_matches(pattern)
        if not found:
            bucket = find_missing_bucket(pattern)
            missing = "no such file or directory" if bucket is None else f"there is no bucket {bucket}"
            raise MissingInputError(f"{pattern or storage.EMPTY}: {missing}")
        paths.update(found)
    return sorted(paths)


def find_matches(pattern: str) -> list[str]:
    """Return the sorted paths that match a pattern. The list may be empty.

    Nothing matches a pattern that is longer than any path.
    """
    if len(pattern) > LONGEST_PATTERN:
        return []
    if storage.is_remote(pattern):
        return _match_remote(pattern)
    found = _match_local(pattern.removeprefix("file://").split("/"))
    return sorted(found)


def _match_local(components: list[str]) -> set[str]:
    """Return the matches of a local pattern.

    The pattern is split at the first ``**``. The part before it gives a directory. The part after it is tried
    in every folder below that directory. ``glob`` handles the other wildcards, but not ``**``, because there
    it would follow links in circles.

    components: the pattern, split at ``/``.
    """
    from glob import escape, glob  # imported here because it is slow to import

    if _ANY_FOLDERS not in components:
        return set(glob("/".join(components)))
    place = components.index(_ANY_FOLDERS)
    before, after = components[:place], components[place + 1 :]
    while after[:1] == [_ANY_FOLDERS]:  # a/**/**/b means the same as a/**/b, so repeated ** are dropped
        after = after[1:]
    # in/**/x/*.txt -> before ["in"], after ["x", "*.txt"]. With folders in/a and in/a/b, try in/x/*.txt,
    # in/a/x/*.txt and in/a/b/x/*.txt. ``after`` may contain another ``**``, hence the recursion.
    found: set[str] = set()
    for root in _find_roots(before):
        if not storage.is_directory(root or "."):
            continue
        listing = list_inputs(root or ".", hidden=True)
        if not after:
            found.update(_join_below(root, name) for name in listing.names if not _has_hidden(name))
            continue
        matches: set[str] = set()
        for folder in listing.folders:
            if not _has_hidden(folder):
                start = escape(_join_below(root, folder)).split("/") if root or folder else []
                matches |= _match_local([*start, *after])
        # Leave out links to folders that the listing did not follow: it has visited these folders under
        # another name, and their files would appear twice.
        followed = {_join_below(root, folder) for folder in listing.folders}
        found |= {
            path
            for path in matches
            if path in followed or not (storage.is_link(path) and storage.is_directory(path))
        }
    return _drop_containers(found)


def _find_roots(before: list[str]) -> list[str]:
    """Return the directories in which a ``**`` begins. An empty name is the current directory."""
    from glob import glob

    if not before:
        return [""]
    path = "/".join(before)
    if not _MAGIC.search(path):
        return [path or "/"]
    return sorted(glob(path))


def _join_below(root: str, name: str) -> str:
    """Return the path of ``name`` below ``root``, or ``root`` itself for an empty name."""
    return storage.join(root, name) if name else root


def _has_hidden(name: str) -> bool:
    """Return True if a component of the name begins with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def _drop_containers(paths: set[str]) -> set[str]:
    """Remove each directory that contains other matches, so that ``in/**/*`` gives the files below ``in``
    only.
    """
    containers = set()
    for path in paths:
        above = path
        while "/" in above.strip("/"):
            above = storage.get_parent(above)
            containers.add(above)
    return paths - containers


def _match_remote(pattern: str) -> list[str]:
    """Return the matches of a URL pattern, without the hidden names that fsspec's ``glob`` also matches."""
    components = [part if part == _ANY_FOLDERS else re.sub(r"\*+", "*", part) for part in pattern.split("/")]
    with storage.name_path_in_errors(pattern):
        file_system, inner = open_file_system("/".join(components))
        found = [str(path).strip("/") for path in file_system.glob(inner)]
    asked = inner.strip("/").split("/")
    scheme = pattern.split("://")[0]
    paths = {f"{scheme}://{path}" for path in found if _matches_components(path.split("/"), asked)}
    if _ANY_FOLDERS not in components:
        return sorted(paths)
    if components[-1] == _ANY_FOLDERS:
        return sorted(path for path in paths if not storage.is_directory(path))
    return sorted(_drop_containers(paths))


def _matches_components(names: list[str], components: list[str]) -> bool:
    """Return True if a path's components match a pattern's components.

    A wildcard never matches a leading dot.
    """
    if not components or not names:
        return not components and not names
    first, rest = components[0], components[1:]
    is_hidden = names[0].startswith(".")
    if first == _ANY_FOLDERS:
        if not rest:
            return not any(name.startswith(".") for name in names)
        return _matches_components(names, rest) or (
            not is_hidden and _matches_components(names[1:], components)
        )
    if is_hidden and not first.startswith("."):
        return False
    return fnmatchcase(names[0], first) and _matches_components(names[1:], rest)
