"""The files of a run's sources, their kinds, and the field of text."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from bertdata.errors import InputError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.sources.fields import TextFields
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS, SourceKind, plain_name
from bertdata.sources.recognise import check_kind, kind_of, read_beginning, unknown_kind
from bertdata.sources.settings import RecordSettings

_OF_DATASETS = ("state.json", "dataset_info.json", "dataset_dict.json", "manifest.json")
"""JSON beside the data of a directory: as ``save_to_disk`` writes it, and our own."""


class Sources(NamedTuple):
    """The files of a run by path, the kind of each, and how many of them are empty."""

    files: list[str]
    kinds: list[str]
    empty: int = 0


def find_sources(patterns: Sequence[str], kind: str | None, *, as_is: bool = False) -> Sources:
    """The files that patterns and directories name, and their kinds.

    kind None: each file's bytes tell. An empty file among others holds no record. InputError for a file whose
    kind is not known, or is plainly another; as_is: plain text may be anything. Other errors as from
    find_files.
    """
    files = find_files(patterns, kind)
    found = storage.each(files, partial(_look_at, kind=kind, as_is=as_is))
    empty = sum(one is None for one in found)
    if kind is not None:
        return Sources(files, [kind] * len(files), empty)
    if empty == len(files):
        others = "" if empty == 1 else f", and so are {empty - 1} others"
        raise InputError(
            f"{files[0]}: is empty{others}: no bytes tell its kind; name it: --input-kind jsonl, or another"
        )
    return Sources(
        files, [one or _kind_of_empty(path) for path, one in zip(files, found, strict=True)], empty
    )


def _look_at(path: str, *, kind: str | None, as_is: bool) -> str | None:
    """The kind of a file, checked where it is given. None for an empty file."""
    begin = read_beginning(path)
    if begin.is_empty:
        return None
    if kind is not None:
        check_kind(begin, kind, as_is=as_is)
        return kind
    known = kind_of(begin)
    if known is None:
        raise unknown_kind(begin)
    return known


def find_files(patterns: Sequence[str], kind: str | None) -> list[str]:
    """The files that patterns and directories name, by path.

    Of a directory those whose names end as the kind's do, or any kind's, in it and below, hidden ones left
    out. MissingInputError for a pattern or a directory without files, SettingsError for a file that is named
    twice.
    """
    files: list[str] = []
    for path in storage.expand(list(patterns)):
        files += _files_below(path, kind) if storage.is_directory(path) else [path]
    files.sort()
    for path, following in pairwise(files):
        if path == following:
            raise SettingsError(f"{path}: named twice; its records would be written twice")
    return files


def _files_below(directory: str, kind: str | None) -> list[str]:
    kinds = [SOURCE_KINDS[kind]] if kind is not None else list(SOURCE_KINDS.values())
    there = storage.list_files(directory)
    names = [name for name in there if _is_data(name, kinds)]
    if not names:
        expected = ", ".join(sorted({name for one in kinds for name in one.expected}))
        what = f"no files of text found, expected {expected}, or compressed ones"
        raise MissingInputError(f"{directory}: {what}{held_instead(there)}")
    return [storage.join(directory, name) for name in names]


def held_instead(names: Sequence[str]) -> str:
    """Return words on what a directory without fitting files holds, and how to have it read."""
    if not names:
        return "; it is empty"
    others = "" if len(names) == 1 else f" and {len(names) - 1} others"
    return f"; it holds {names[0]}{others}: name such files by a pattern and their kind by --input-kind"


def _is_data(name: str, kinds: Sequence[SourceKind]) -> bool:
    parts = name.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and parts[-1] not in _OF_DATASETS and any(kind.has(name) for kind in kinds)


def _kind_of_empty(path: str) -> str:
    """The kind of an empty file among others, by its name. InputError where such a file is never empty."""
    name = plain_name(path)
    if name.endswith((".parquet", ".arrow")):
        raise InputError(f"{path}: is empty, expected {name.rpartition('.')[2]}; fetch or make it again")
    if name.endswith((".csv", ".tsv")):
        return name[-3:]
    return BLOCKS if name.endswith(".txt") else "jsonl"


def with_text_field(settings: RecordSettings, files: Sequence[str], kinds: Sequence[str]) -> RecordSettings:
    """The settings with the field of text, found in the first file that has fields.

    SettingsError where several fields are texts, for a field that is not there, and for fields of files that
    have none.
    """
    for path, kind in zip(files, kinds, strict=True):
        columns = SOURCE_KINDS[kind].columns
        if columns is None or read_beginning(path).is_empty:
            continue
        found = columns(path, settings)
        if found is None:  # its records are texts alone
            return settings
        if settings.text_field is not None:
            _check_field(settings.text_field, [*found.texts, *found.paragraphs, *found.inner], path)
            return settings
        return replace(settings, text_field=_only_field(found, settings, path))
    if any(SOURCE_KINDS[kind].columns for kind in kinds):
        return settings
    for name in ("text_field", "id_field", "language_field"):
        if getattr(settings, name) is not None:
            raise SettingsError(
                f"--{name.replace('_', '-')}: plain text and articles have no fields; leave it out"
            )
    return settings


def _check_field(name: str, found: Sequence[str], path: str) -> None:
    if found and name not in found:
        raise SettingsError(
            f"{path}: has no field {name!r} of texts, expected one of {', '.join(map(repr, found))}"
        )


def _only_field(found: TextFields, settings: RecordSettings, path: str) -> str:
    """The only field of strings, or of lists of strings where there are none."""
    taken = (settings.id_field, settings.language_field)
    names = [name for name in found.texts if name not in taken]
    names = names or [name for name in found.paragraphs if name not in taken]
    if not names and found.inner:
        raise SettingsError(
            f"{path}: has fields of texts within others alone: {', '.join(found.inner)}; name one: "
            f"--text-field {found.inner[0]}"
        )
    if not names:
        raise InputError(f"{path}: has no field of texts")
    if len(names) > 1:
        raise SettingsError(
            f"{path}: has several fields of texts: {', '.join(names)}; name one: --text-field "
            f"{'text' if 'text' in names else names[0]}"
        )
    return names[0]
