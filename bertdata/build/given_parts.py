"""The input files of a run: the files that the user's paths, patterns and directories mean.

A directory stands for the parts that ``bertdata segment`` wrote to it.
"""

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
    """The text files that a run reads, sorted by path.

    notes: lines for the user about the test files of a directory, which are left out.
    """

    parts: list[str]
    notes: tuple[str, ...] = ()


def find_parts(patterns: Sequence[str]) -> GivenParts:
    """Return the text files that the user's patterns mean, for creating shards.

    Raises SettingsError if two shards would get the same name, or if a file name is not valid UTF-8. Raises
    the errors of ``find_training_text`` too, for example if a pattern matches no file.
    """
    found = find_training_text(patterns)
    for part, name in name_parts(found.parts).items():
        # Python represents bytes of a file name that are not valid UTF-8 by these code points (lone
        # surrogates).
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise SettingsError(
                f"{part!a}: the name is not UTF-8, or not seen as such; rename it, or set LC_ALL=C.UTF-8"
            )
    return found


def find_training_text(patterns: Sequence[str]) -> GivenParts:
    """Return the text files that the user's patterns mean. A directory means its training files.

    Raises an error for a directory without such text, for an index file that bertdata wrote, for held-out
    text next to training text, and for a file that is named twice with different spellings.
    """
    given = expand_patterns(patterns)
    refuse_file_lists(given)
    for path, is_directory in zip(given, storage.map_paths(given, storage.is_directory), strict=True):
        if is_directory and list_segmented_files(path) is None:
            _refuse_directory(path)
    text = choose_training_text(given)
    found = sorted(set(text.paths))  # the user may name a directory and also files in it
    refuse_repeated(found, "its text would be read")
    refuse_held_out(found)
    return GivenParts(parts=found, notes=text.notes)


def _refuse_directory(directory: str) -> None:
    """Raise MissingInputError, which says what the directory contains instead of text."""
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
