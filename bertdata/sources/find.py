"""The files of a run's sources, their kinds, and the field of text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.input_files import Chosen, InputFiles, choose_named, find_input_files
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS, TEXT, SourceKind, check_kind, recognise
from bertdata.sources.saved_datasets import INFO, NOT_LISTED, SPLITS, STATE, refuse_unlisted, take_data_files
from bertdata.sources.settings import RecordSettings

TWICE = "its records would be written"

_OF_DATASETS = (STATE, INFO, SPLITS, MANIFEST_NAME)
"""JSON beside the data of a directory: as ``save_to_disk`` writes it, and our own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The files of sources, by path, and the kind of each. notes: on files that are left out."""

    files: list[str]
    kinds: list[str]
    notes: tuple[str, ...] = ()


def find_sources(patterns: Sequence[str], kind: str | None) -> Sources:
    """Find the files that patterns and directories name, and the kind of each.

    kind None: each file's bytes tell. InputError for one whose kind is not known. Other errors as from
    find_files.
    """
    found = find_files(patterns, kind)
    if kind is None:
        kinds = [_recognised(path) for path in found.files]
    else:
        for path in found.files:
            check_kind(path, kind)
        kinds = [kind] * len(found.files)
    return Sources(files=found.files, kinds=kinds, notes=found.notes)


def find_files(patterns: Sequence[str], kind: str | None) -> InputFiles:
    """Find the files that patterns and directories name.

    Of a directory those whose names end as the kind's do, or any kind's, in it and below, hidden ones left
    out; of one that ``datasets`` saved the data files that it lists. Errors as from find_input_files, and
    DatasetError for several splits of a saved dataset.
    """
    kinds = [SOURCE_KINDS[kind]] if kind is not None else list(SOURCE_KINDS.values())

    def choose(directory: str, names: list[str]) -> Chosen:
        wanted, others = choose_named(names, lambda name: _is_data(name, kinds))
        for reason in list(others):
            others[reason] = [name for name in others[reason] if storage.base_name(name) not in _OF_DATASETS]
            if not others[reason]:
                del others[reason]
        if not any(name.endswith(".arrow") for name in wanted):
            return wanted, others
        _, unlisted = take_data_files(directory, names)
        dropped = [name for name in wanted if name in set(unlisted)]
        found = [name for name in wanted if name not in set(unlisted)]
        return found, {**others, **({NOT_LISTED: dropped} if dropped else {})}

    expected = ", ".join(sorted({name for one in kinds for name in one.expected}))
    missing = f"no files of text found, expected {expected}, or compressed ones"
    found = find_input_files(patterns, choose, missing=missing, twice=TWICE)
    refuse_unlisted(found.files)
    return found


def _is_data(name: str, kinds: Sequence[SourceKind]) -> bool:
    return storage.base_name(name) not in _OF_DATASETS and any(kind.has(name) for kind in kinds)


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
