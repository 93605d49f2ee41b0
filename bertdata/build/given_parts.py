"""The parts that the user names: files, patterns, and directories written by ``bertdata segment``."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.part_names import name_parts
from bertdata.dataset.discover import refuse_unfinished
from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.input_files import refuse_repeated
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.patterns import expand_patterns
from bertdata.text.manifest import TEXT_KIND
from bertdata.text.training_text import (
    choose_training_text,
    list_segmented_files,
    refuse_file_lists,
    refuse_held_out,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenParts:
    """The text parts of a run, sorted by path.

    notes: lines for the user about a directory's test files, which are left out.
    """

    parts: list[str]
    notes: tuple[str, ...] = ()


def find_parts(patterns: Sequence[str]) -> GivenParts:
    """Return the text parts that the patterns name, for creating shards.

    Raises SettingsError if two shards would get the same name, or if a file name is not UTF-8. Patterns that
    match no file, or a directory without parts, are errors of ``find_training_text``.
    """
    found = find_training_text(patterns)
    for part, name in name_parts(found.parts).items():
        # Python represents undecodable bytes of a file name by lone surrogates.
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise SettingsError(
                f"{part!a}: the name is not UTF-8, or not seen as such; rename it, or set LC_ALL=C.UTF-8"
            )
    return found


def find_training_text(patterns: Sequence[str]) -> GivenParts:
    """Return the text files that the patterns name. For a directory of text, its training parts.

    Refuses other directories, index files written by this package, held-out text next to training text, and a
    file named twice with different spellings.
    """
    given = expand_patterns(patterns)
    refuse_file_lists(given)
    for path, is_directory in zip(given, storage.map_paths(given, storage.is_directory), strict=True):
        if is_directory and list_segmented_files(path) is None:
            _refuse_directory(path)
    text = choose_training_text(given)
    found = sorted(set(text.paths))  # a user may name both a directory and parts in it
    refuse_repeated(found, "its text would be read")
    refuse_held_out(found)
    return GivenParts(parts=found, notes=text.notes)


def _refuse_directory(directory: str) -> None:
    """Raise MissingInputError that says what the directory contains instead of text."""
    path = storage.join(directory, MANIFEST_NAME)
    if not storage.exists(path):
        refuse_unfinished(directory, storage.list_files(directory))
        raise MissingInputError(
            f"{directory}: is a directory without {MANIFEST_NAME}, which would list its parts; give its "
            f"files: {storage.join(directory, '*')}"
        )
    kind = parse_json(storage.read_bytes(path), path).get("kind")
    raise MissingInputError(
        f"{directory}: is a directory of {kind}, expected one of {TEXT_KIND}, as bertdata segment makes it, "
        "or a file"
    )
