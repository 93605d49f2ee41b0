"""Choose the training text among the paths of an input.

A directory that ``segment`` made stands for its training parts. Held-out text is refused. ``segment``,
``create``, ``train-vocab`` and ``convert --to fairseq`` share this rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertdata.config.held_out_names import held_out, is_list, pattern_of_test_shards
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, parse_json
from bertdata.text.manifest import TEXT_KIND, parse_text_manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingText:
    """Paths to read.

    notes: messages about test shards that were left out.
    """

    paths: list[str]
    notes: tuple[str, ...] = ()


def take_training_text(paths: Iterable[str]) -> TrainingText:
    """Replace each directory that ``segment`` made by its training parts. Other paths stay as they are."""
    found: list[str] = []
    notes: list[str] = []
    for path in paths:
        listed = list_text_files(path) if storage.is_directory(path) else None
        if listed is None:
            found.append(path)
            continue
        # held_out recognises evaluation files, and test shards if there are training shards, by their names.
        left_out = held_out(listed)
        found += [storage.join(path, name) for name in listed if name not in left_out]
        notes += _notes(path, left_out)
    return TrainingText(paths=found, notes=tuple(notes))


def list_text_files(directory: str) -> list[str] | None:
    """Return the text files that a directory's manifest lists, or None if ``segment`` did not make it."""
    where = storage.join(directory, MANIFEST_NAME)
    if not storage.exists(where):
        return None
    data = storage.read_bytes(where)
    if parse_json(data, where).get("kind") != TEXT_KIND:
        return None
    return [entry.name for entry in parse_text_manifest(data, where).files if not is_list(entry.name)]


def refuse_lists(paths: Iterable[str]) -> None:
    """Raise SettingsError for MD5SUMS and similar lists of this package, which are not text."""
    for path in paths:
        if storage.get_base_name(path) == MD5SUMS_NAME or is_list(path):
            raise SettingsError(f"{path}: is a list of ours, expected text; {_remedy(path)}")


def refuse_held_out(files: Sequence[str]) -> None:
    """Raise SettingsError if any of the files is held out of training."""
    found = held_out(files)
    if found:
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        raise SettingsError(
            f"{found[0]}{more}: is held out of training, expected in a dataset of its own; "
            f"{_remedy(found[0])}"
        )


def _notes(directory: str, left_out: Sequence[str]) -> list[str]:
    """Return a message if test shards are left out. Evaluation files such as ``eval.txt`` get no message."""
    pattern = pattern_of_test_shards(left_out)
    if pattern is None:
        return []
    return [
        f"{directory}: its {len(left_out)} test shards are left out; make a dataset of their own of "
        f"{storage.join(directory, pattern)}"
    ]


def _remedy(path: str) -> str:
    """Return advice how to name the training text of the path's directory."""
    directory = storage.get_parent(path)
    if list_text_files(directory) is not None:
        return f"give {directory}, of which the parts to train on are taken"
    return "leave it out"
