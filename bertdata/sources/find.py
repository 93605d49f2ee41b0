"""The files of a run's sources, their kinds, and the field of text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from bertdata.errors import InputError, MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS, TEXT, SourceKind, check_kind, recognise
from bertdata.sources.settings import RecordSettings

_OF_DATASETS = ("state.json", "dataset_info.json", "dataset_dict.json", "manifest.json")
"""JSON beside the data of a directory: as ``save_to_disk`` writes it, and our own."""


def find_sources(patterns: Sequence[str], kind: str | None) -> tuple[list[str], list[str]]:
    """The files that patterns and directories name, by path, and the kind of each.

    kind None: each file's bytes tell. InputError for one whose kind is not known. Other errors as from
    find_files.
    """
    files = find_files(patterns, kind)
    if kind is None:
        return files, [_recognised(path) for path in files]
    for path in files:
        check_kind(path, kind)
    return files, [kind] * len(files)


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
    names = [name for name in storage.list_files(directory) if _is_data(name, kinds)]
    if not names:
        expected = ", ".join(sorted({name for one in kinds for name in one.expected}))
        raise MissingInputError(
            f"{directory}: no files of text found, expected {expected}, or compressed ones"
        )
    return [storage.join(directory, name) for name in names]


def _is_data(name: str, kinds: Sequence[SourceKind]) -> bool:
    parts = name.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and parts[-1] not in _OF_DATASETS and any(kind.has(name) for kind in kinds)


def _recognised(path: str) -> str:
    kind = recognise(path)
    if kind is None:
        raise InputError(
            f"{path}: its bytes do not tell its kind; name it: --input-kind {BLOCKS} (plain text, blank "
            f"lines between documents), {TEXT} (a file a document), or another"
        )
    return kind


def with_text_field(settings: RecordSettings, files: Sequence[str], kinds: Sequence[str]) -> RecordSettings:
    """The settings with the field of text, found in the first file that has fields.

    SettingsError where several fields are texts, for a field that is not there, and for fields of files that
    have none.
    """
    for path, kind in zip(files, kinds, strict=True):
        columns = SOURCE_KINDS[kind].columns
        if columns is None:
            continue
        found = columns(path)
        if settings.text_field is not None:
            _check_field(settings.text_field, found, path)
            return settings
        taken = (settings.id_field, settings.language_field)
        return replace(settings, text_field=_only([name for name in found if name not in taken], path))
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


def _only(names: Sequence[str], path: str) -> str:
    if not names:
        raise InputError(f"{path}: has no field of texts")
    if len(names) > 1:
        raise SettingsError(
            f"{path}: has several fields of texts: {', '.join(names)}; name one: --text-field "
            f"{'text' if 'text' in names else names[0]}"
        )
    return names[0]
