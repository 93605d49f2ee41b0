"""Text to train on among given paths: of a directory that ``segment`` made its parts, and nothing held out.

One rule for all commands that read text: ``segment``, ``create``, ``train-vocab``, ``convert --to fairseq``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertdata.config.text_file_names import held_out, is_list, pattern_of_test_shards
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, parse_json
from bertdata.text.manifest import TEXT_KIND, parse_text_manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingText:
    """The paths to read. notes: on test shards of a directory, which are left out."""

    paths: list[str]
    notes: tuple[str, ...] = ()


def with_training_text(paths: Iterable[str]) -> TrainingText:
    """Put the parts to train on in the place of each directory that ``segment`` made. Others stay."""
    found: list[str] = []
    notes: list[str] = []
    for path in paths:
        listed = listed_text(path) if storage.is_directory(path) else None
        if listed is None:
            found.append(path)
            continue
        left_out = held_out(listed)
        found += [storage.join(path, name) for name in listed if name not in left_out]
        notes += _notes(path, left_out)
    return TrainingText(paths=found, notes=tuple(notes))


def listed_text(directory: str) -> list[str] | None:
    """Return the text files that the directory's manifest lists, None where ``segment`` did not make it."""
    where = storage.join(directory, MANIFEST_NAME)
    if not storage.exists(where):
        return None
    data = storage.read_bytes(where)
    if parse_json(data, where).get("kind") != TEXT_KIND:
        return None
    return [entry.name for entry in parse_text_manifest(data, where).files if not is_list(entry.name)]


def refuse_lists(paths: Iterable[str]) -> None:
    """Raise SettingsError for a list of ours, which lies among text and is none."""
    for path in paths:
        if storage.base_name(path) == MD5SUMS_NAME or is_list(path):
            raise SettingsError(f"{path}: is a list of ours, expected text; {_remedy(path)}")


def refuse_held_out(files: Sequence[str]) -> None:
    """Raise SettingsError for text held out of training beside the text to train on."""
    found = held_out(files)
    if found:
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        raise SettingsError(
            f"{found[0]}{more}: is held out of training, expected in a dataset of its own; "
            f"{_remedy(found[0])}"
        )


def _notes(directory: str, left_out: Sequence[str]) -> list[str]:
    """Return a line on test shards that are left out. An evaluation text needs none."""
    pattern = pattern_of_test_shards(left_out)
    if pattern is None:
        return []
    return [
        f"{directory}: its {len(left_out)} test shards are left out; make a dataset of their own of "
        f"{storage.join(directory, pattern)}"
    ]


def _remedy(path: str) -> str:
    """Return the way to the text to train on."""
    directory = storage.parent(path)
    if listed_text(directory) is not None:
        return f"give {directory}, of which the parts to train on are taken"
    return "leave it out"
