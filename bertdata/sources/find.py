"""Find the input files that a user names, determine their formats, and choose the field with the text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.input_files import ChosenNames, InputFiles, choose_wanted_names, find_input_files
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.sources.encoding import UTF_8, looks_like_utf8
from bertdata.sources.fields import TextFields
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS, SourceKind, strip_packing_ending
from bertdata.sources.recognise import check_kind, make_unknown_kind_error, read_beginning, recognise_kind
from bertdata.sources.saved_datasets import (
    INFO,
    NOT_LISTED,
    SPLITS,
    STATE,
    refuse_unlisted,
    select_data_files,
)
from bertdata.sources.settings import RecordSettings

TWICE = "its records would be written"

_DATASET_JSON_FILES = (STATE, INFO, SPLITS, MANIFEST_NAME)
"""JSON files that hold no records. ``save_to_disk`` or this package writes them next to the data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """Input files of a run.

    files: paths, in the order of reading.
    kinds: kind of each file, a key of ``kinds.SOURCE_KINDS``.
    empty: how many of the files are empty.
    notes: messages about files that were left out.
    """

    files: list[str]
    kinds: list[str]
    empty: int = 0
    notes: tuple[str, ...] = ()


def find_sources(
    patterns: Sequence[str], kind: str | None, *, as_is: bool = False, encoding: str = UTF_8
) -> Sources:
    """Find the files that patterns and directories name, and determine the kind of each file.

    Raises InputError for a file whose kind is unknown or clearly differs from ``kind``, MissingInputError if
    a pattern matches nothing, and DatasetError for a saved dataset with several splits.

    kind: kind of all files. None: the kind of each file is recognised from its bytes. Empty files may be
        among the files. They have no records.
    as_is: accept any bytes as plain text.
    encoding: encoding of the files' text, as ``normalise_encoding`` returns it.
    """
    found = find_files(patterns, kind)
    files, notes = found.files, (*found.notes, *_list_encoding_notes(found.files, encoding))
    looks = storage.map_paths(files, partial(_determine_kind, kind=kind, as_is=as_is, encoding=encoding))
    empty = sum(one is None for one in looks)
    if kind is not None:
        return Sources(files=files, kinds=[kind] * len(files), empty=empty, notes=notes)
    if empty == len(files):
        others = "" if empty == 1 else f", and so are {empty - 1} others"
        raise InputError(
            f"{files[0]}: is empty{others}: no bytes tell its kind; name it: --input-kind jsonl, or another"
        )
    kinds = [one or _guess_empty_kind(path) for path, one in zip(files, looks, strict=True)]
    return Sources(files=files, kinds=kinds, empty=empty, notes=notes)


def _list_encoding_notes(files: Sequence[str], encoding: str) -> list[str]:
    """Return a message for each file that is probably in UTF-8, although the user named another encoding."""
    if encoding == UTF_8:
        return []
    heads = storage.map_paths(files, read_beginning)
    return [
        f"{begin.path}: its beginning is valid UTF-8, but it is read as {encoding}; leave --encoding out for "
        "files in UTF-8"
        for begin in heads
        if looks_like_utf8(begin.head)
    ]


def _determine_kind(path: str, *, kind: str | None, as_is: bool, encoding: str) -> str | None:
    """Return the kind of a file according to its first bytes, or None for an empty file.

    kind: kind that the user chose. It is checked against the bytes. None: the bytes determine the kind.
    """
    begin = read_beginning(path, encoding)
    if begin.is_empty:
        return None
    if kind is not None:
        check_kind(begin, kind, as_is=as_is)
        return kind
    known = recognise_kind(begin)
    if known is None:
        raise make_unknown_kind_error(begin)
    return known


def find_files(patterns: Sequence[str], kind: str | None) -> InputFiles:
    """Find the files that patterns and directories name.

    Directories are searched recursively. Their hidden files, and files whose names do not fit the kind, are
    left out. In a directory saved by ``datasets``, only the data files that its ``state.json`` lists are
    taken.

    Raises MissingInputError if a pattern matches nothing or a directory has no such file, SettingsError for a
    file that is named twice, and DatasetError for a saved dataset with several splits.

    kind: kind of all files. None: take files whose names fit any kind.
    """
    kinds = [SOURCE_KINDS[kind]] if kind is not None else list(SOURCE_KINDS.values())

    def choose(directory: str, names: list[str]) -> ChosenNames:
        """Divide a directory's files into those to read and those to leave out."""
        wanted, others = choose_wanted_names(names, lambda name: _is_data_file(name, kinds))
        for reason in list(others):
            others[reason] = [
                name for name in others[reason] if storage.get_base_name(name) not in _DATASET_JSON_FILES
            ]
            if not others[reason]:
                del others[reason]
        # A directory saved by datasets may hold caches with the ending .arrow. Reading them would repeat
        # records, so only the files in its state.json are taken.
        if not any(name.endswith(".arrow") for name in wanted):
            return wanted, others
        _, unlisted = select_data_files(directory, names)
        dropped = [name for name in wanted if name in set(unlisted)]
        found = [name for name in wanted if name not in set(unlisted)]
        return found, {**others, **({NOT_LISTED: dropped} if dropped else {})}

    expected = ", ".join(sorted({name for one in kinds for name in one.expected}))
    missing = f"no files of text found, expected {expected}, or compressed ones"
    found = find_input_files(patterns, choose, missing=missing, twice=TWICE)
    refuse_unlisted(found.files)
    return found


def _is_data_file(name: str, kinds: Sequence[SourceKind]) -> bool:
    """Return True if the file's name fits one of the kinds."""
    return storage.get_base_name(name) not in _DATASET_JSON_FILES and any(
        kind.has_file_name(name) for kind in kinds
    )


def _guess_empty_kind(path: str) -> str:
    """Guess the kind of an empty file from its name.

    Raises InputError for Parquet and Arrow, whose files are never empty.
    """
    name = strip_packing_ending(path)
    if name.endswith((".parquet", ".arrow")):
        raise InputError(f"{path}: is empty, expected {name.rpartition('.')[2]}; fetch or make it again")
    if name.endswith((".csv", ".tsv")):
        return name[-3:]
    return BLOCKS if name.endswith(".txt") else "jsonl"


def choose_text_field(settings: RecordSettings, files: Sequence[str], kinds: Sequence[str]) -> RecordSettings:
    """Return the settings with ``text_field`` filled in, if the user named no field and only one is possible.

    The fields are those of the first file whose records have fields. Raises SettingsError if several fields
    hold text, if the named field does not exist, or if a field is named and all files are of kinds
    without fields.
    """
    for path, kind in zip(files, kinds, strict=True):
        columns = SOURCE_KINDS[kind].columns
        if columns is None or read_beginning(path, settings.encoding).is_empty:
            continue
        found = columns(path, settings)
        if found is None:  # the records are bare texts without fields
            return settings
        if settings.text_field is not None:
            _check_field_exists(settings.text_field, [*found.texts, *found.paragraphs, *found.inner], path)
            return settings
        return replace(settings, text_field=_choose_only_field(found, settings, path))
    if any(SOURCE_KINDS[kind].columns for kind in kinds):
        return settings
    for name in ("text_field", "id_field", "language_field"):
        if getattr(settings, name) is not None:
            raise SettingsError(
                f"--{name.replace('_', '-')}: plain text and articles have no fields; leave it out"
            )
    return settings


def find_files_without_language(
    settings: RecordSettings, files: Sequence[str], kinds: Sequence[str]
) -> list[str]:
    """Return the files with fields among which the language field is not, as far as their beginnings show."""
    kind_of = dict(zip(files, kinds, strict=True))
    lacking = storage.map_paths(files, lambda path: _lacks_language_field(path, kind_of[path], settings))
    return [path for path, is_lacking in zip(files, lacking, strict=True) if is_lacking]


def _lacks_language_field(path: str, kind: str, settings: RecordSettings) -> bool:
    """Return True if the records at the beginning of a file have fields, but not the language field."""
    columns = SOURCE_KINDS[kind].columns
    if columns is None or read_beginning(path, settings.encoding).is_empty:
        return False
    found = columns(path, settings)
    if found is None:
        return False
    return settings.language_field not in (*found.texts, *found.paragraphs, *found.inner)


def _check_field_exists(name: str, found: Sequence[str], path: str) -> None:
    """Raise SettingsError if the field that the user named is not among the fields that were found."""
    if found and name not in found:
        raise SettingsError(
            f"{path}: has no field {name!r} of texts, expected one of {', '.join(map(repr, found))}"
        )


def _choose_only_field(found: TextFields, settings: RecordSettings, path: str) -> str:
    """Return the only field that holds strings, or if there is none, the only field that holds lists of
    strings.

    Raises SettingsError if there are several such fields, and InputError if there is none.
    """
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
