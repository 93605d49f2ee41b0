"""Names of parts (input files) in a manifest, and of the shards that are created from them.

A part is named by its file name. If several files have the same name, folders are put in front::

    paths                            names in the manifest             shards
    a/one.txt, b/two.txt             one.txt, two.txt                  one.txt..., two.txt...
    en/2020/p.txt, de/2020/p.txt     en/2020/p.txt, de/2020/p.txt      en-2020-p.txt..., de-2020-p.txt...
"""

import os
from collections.abc import Sequence

from bertdata.errors import SettingsError
from bertdata.io import storage


def name_parts(parts: Sequence[str]) -> dict[str, str]:
    """Return the name of each part in the manifest, by path.

    It is the file name. If several files have this name, it is the path below the deepest folder that
    contains all of them. The names therefore do not change if this folder is moved.

    Raises SettingsError if the shards of two parts would have the same name.
    """
    by_file: dict[str, list[str]] = {}
    for part in parts:
        by_file.setdefault(storage.get_base_name(part), []).append(part)
    names: dict[str, str] = {}
    for file, group in by_file.items():
        names |= {group[0]: file} if len(group) == 1 else _add_folders(group)
    _check_unique_stems([(make_shard_stem(name), part) for part, name in names.items()])
    return {part: names[part] for part in parts}


def find_names_with_folders(parts: Sequence[str]) -> dict[str, str]:
    """Return, by path, the names of those parts whose file name alone is not unique."""
    return {part: name for part, name in name_parts(parts).items() if "/" in name}


def make_shard_stem(name: str) -> str:
    """Return the name of the shard that is created from a part, without the ending for the file format.

    Slashes in the name of the part become dashes, because a dataset has no sub-directories.
    """
    return name.replace("/", "-")


def _add_folders(parts: Sequence[str]) -> dict[str, str]:
    """Return names for parts that have the same file name: their paths below the folder that contains all of
    them.
    """
    split = [_split_path(part) for part in parts]
    shared = len(os.path.commonprefix([components[:-1] for components in split]))  # noqa: RUF071 - of lists
    if not shared:
        raise SettingsError(
            f"{parts[0]} and {parts[-1]} would make the same shard, and lie on different file systems; "
            "give each part a name of its own"
        )
    return {part: "/".join(components[shared:]) for part, components in zip(parts, split, strict=True)}


def _split_path(part: str) -> list[str]:
    """Return the names of the folders and of the file in the part's absolute path."""
    path = part if storage.is_remote(part) else os.path.abspath(part.removeprefix("file://"))
    return path.split("/")


def _check_unique_stems(stems: Sequence[tuple[str, str]]) -> None:
    """Raise SettingsError if the shards of two parts would have the same name.

    stems: pairs of a shard's name and the path of its part.
    """
    found: dict[str, str] = {}
    for stem, part in stems:
        other = found.setdefault(stem, part)
        if other != part:
            raise SettingsError(
                f"{other} and {part} would make the same shard, {stem}; give each part a name of its own"
            )
