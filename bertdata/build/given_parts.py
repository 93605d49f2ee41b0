"""The parts that a run is given: files, patterns, and directories that ``bertdata segment`` made."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.build.part_names import name_parts
from bertdata.dataset.discover import refuse_unfinished
from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.input_files import refuse_repeated
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.patterns import expand
from bertdata.text.manifest import TEXT_KIND
from bertdata.text.training_text import listed_text, refuse_held_out, refuse_lists, with_training_text


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenParts:
    """The parts, sorted. notes: on test shards of a directory, which are left out."""

    parts: list[str]
    notes: tuple[str, ...] = ()


def find_parts(patterns: Sequence[str]) -> GivenParts:
    """Find the parts that the patterns name, to make shards of. Errors as from find_training_text.

    SettingsError also for shards of one name, and for names that are not UTF-8.
    """
    found = find_training_text(patterns)
    for part, name in name_parts(found.parts).items():
        if any("\ud800" <= character <= "\udfff" for character in name):  # bytes the system could not decode
            raise SettingsError(
                f"{part!a}: the name is not UTF-8, or not seen as such; rename it, or set LC_ALL=C.UTF-8"
            )
    return found


def find_training_text(patterns: Sequence[str]) -> GivenParts:
    """Find the files of text that the patterns name. Of a directory of text, the parts to train on.

    Refuses other directories, lists of ours, text held out of training beside the text to train on, and a
    file that is named by two spellings.
    """
    given = expand(patterns)
    refuse_lists(given)
    for path, is_directory in zip(given, storage.each(given, storage.is_directory), strict=True):
        if is_directory and listed_text(path) is None:
            _refuse_directory(path)
    text = with_training_text(given)
    found = sorted(set(text.paths))  # a directory and its own parts may be named together
    refuse_repeated(found, "its text would be read")
    refuse_held_out(found)
    return GivenParts(parts=found, notes=text.notes)


def _refuse_directory(directory: str) -> None:
    """Raise MissingInputError that says what the directory holds instead of text."""
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
