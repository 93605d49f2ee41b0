"""Names of parts in a manifest, and of the shards created from them.

::

    a/one.txt, b/two.txt             one.txt, two.txt
    en/2020/p.txt, de/2020/p.txt     en/2020/p.txt, de/2020/p.txt; shards en-2020-p.txt..., de-2020-p.txt...
"""

import os
from collections.abc import Sequence

from bertdata.errors import SettingsError
from bertdata.io import storage


def name_parts(parts: Sequence[str]) -> dict[str, str]:
    """Return each part's name, by path: its file name, preceded by folders if several files have that name.

    Folders are counted from the deepest folder that contains all files of that name. So the names stay the
    same when that folder is moved. Raises SettingsError if two parts would give shards of the same name.
    """
    by_file: dict[str, list[str]] = {}
    for part in parts:
        by_file.setdefault(storage.get_base_name(part), []).append(part)
    names: dict[str, str] = {}
    for file, group in by_file.items():
        names |= {group[0]: file} if len(group) == 1 else _add_folders(group)
    _refuse_equal_stems([(make_shard_stem(name), part) for part, name in names.items()])
    return {part: names[part] for part in parts}


def find_names_with_folders(parts: Sequence[str]) -> dict[str, str]:
    """Return a name with folders for each part whose file name is not unique, by path."""
    return {part: name for part, name in name_parts(parts).items() if "/" in name}


def make_shard_stem(name: str) -> str:
    """Return the file name of a part's shard, without the ending of its format.

    Slashes in the part's name become dashes, because a dataset has no sub-directories.
    """
    return name.replace("/", "-")


def _add_folders(parts: Sequence[str]) -> dict[str, str]:
    """Return the names of parts with equal file names: their paths below the folder that all share."""
    split = [_split_path(part) for part in parts]
    shared = len(os.path.commonprefix([components[:-1] for components in split]))  # noqa: RUF071 - of lists
    if not shared:
        raise SettingsError(
            f"{parts[0]} and {parts[-1]} would make the same shard, and lie on different file systems; "
            "give each part a name of its own"
        )
    return {part: "/".join(components[shared:]) for part, components in zip(parts, split, strict=True)}


def _split_path(part: str) -> list[str]:
    """Return the components of the absolute path."""
    path = part if storage.is_remote(part) else os.path.abspath(part.removeprefix("file://"))
    return path.split("/")


def _refuse_equal_stems(stems: Sequence[tuple[str, str]]) -> None:
    """Raise SettingsError if two parts have the same shard name.

    stems: (shard name, part) pairs.
    """
    found: dict[str, str] = {}
    for stem, part in stems:
        other = found.setdefault(stem, part)
        if other != part:
            raise SettingsError(
                f"{other} and {part} would make the same shard, {stem}; give each part a name of its own"
            )
