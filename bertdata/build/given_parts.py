"""The parts that a run is given: files, patterns, and directories that ``bertdata segment`` made."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.part_names import name_parts
from bertdata.dataset.discover import refuse_unfinished
from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, parse_json
from bertdata.text.held_out import held_out, is_list, test_pattern
from bertdata.text.manifest import KIND, parse_text_manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenParts:
    """The parts, sorted. notes: on test shards of a directory, which are left out."""

    parts: list[str]
    notes: tuple[str, ...] = ()


def find_parts(patterns: list[str]) -> GivenParts:
    """The parts that the patterns name. Of a directory of text, those to train on.

    Refuses other directories, lists of ours, text held out of training beside the text to train on, shards
    of one name, and names that are not UTF-8.
    """
    given = storage.expand(patterns)
    _refuse_lists(given)
    parts: set[str] = set()
    notes: list[str] = []
    for path, is_directory in zip(given, storage.each(given, storage.is_directory), strict=True):
        if is_directory:
            listed = _listed_text(path)
            left_out = held_out(listed)
            parts.update(storage.join(path, name) for name in listed if name not in left_out)
            notes += _notes(path, left_out)
        else:
            parts.add(path)
    found = sorted(parts)
    _refuse_held_out(found)
    for part, name in name_parts(found).items():
        if any("\ud800" <= character <= "\udfff" for character in name):  # bytes the system could not decode
            raise SettingsError(
                f"{part!a}: the name is not UTF-8, or not seen as such; rename it, or set LC_ALL=C.UTF-8"
            )
    return GivenParts(parts=found, notes=tuple(notes))


def _listed_text(directory: str) -> list[str]:
    """The text files that the directory's manifest lists. An error says what the directory holds instead."""
    path = storage.join(directory, MANIFEST_NAME)
    if not storage.exists(path):
        refuse_unfinished(directory, storage.list_files(directory))
        raise MissingInputError(
            f"{directory}: is a directory without {MANIFEST_NAME}, which would list its parts; give its "
            f"files: {storage.join(directory, '*')}"
        )
    data = storage.read_bytes(path)
    kind = parse_json(data, path).get("kind")
    if kind != KIND:
        raise MissingInputError(
            f"{directory}: is a directory of {kind}, expected one of {KIND}, as bertdata segment makes it, "
            "or a file"
        )
    return [entry.name for entry in parse_text_manifest(data, path).files if not is_list(entry.name)]


def _notes(directory: str, left_out: Sequence[str]) -> list[str]:
    """A line on test shards that are left out. An evaluation text needs none."""
    pattern = test_pattern(left_out)
    if pattern is None:
        return []
    return [
        f"{directory}: its {len(left_out)} test shards are left out; make a dataset of their own of "
        f"{storage.join(directory, pattern)}"
    ]


def _refuse_lists(given: Sequence[str]) -> None:
    for path in given:
        if storage.base_name(path) == MD5SUMS_NAME or is_list(path):
            raise SettingsError(f"{path}: is a list of ours, expected text; {_remedy(path)}")


def _refuse_held_out(parts: Sequence[str]) -> None:
    found = held_out(parts)
    if found:
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        raise SettingsError(
            f"{found[0]}{more}: is held out of training, expected in a dataset of its own; "
            f"{_remedy(found[0])}"
        )


def _remedy(path: str) -> str:
    """The way to the text to train on."""
    directory = storage.parent(path)
    where = storage.join(directory, MANIFEST_NAME)
    if storage.exists(where) and parse_json(storage.read_bytes(where), where).get("kind") == KIND:
        return f"give {directory}, of which the parts to train on are taken"
    return "leave it out"
