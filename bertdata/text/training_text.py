"""Choose the training text among the paths that a user names, so that held-out text is never trained on.

If a path is a directory that ``bertdata segment`` made, the training parts in it are used. Files of held-out
text are refused. The commands ``segment``, ``create``, ``train-vocab`` and ``convert --to fairseq`` share
this rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bertdata.config.held_out_names import find_held_out, is_companion_list, make_test_pattern
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME, parse_json
from bertdata.text.manifest import TEXT_KIND, parse_text_manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingText:
    """Paths of training text.

    notes: messages about test shards that were left out.
    """

    paths: list[str]
    notes: tuple[str, ...] = ()


def choose_training_text(paths: Iterable[str]) -> TrainingText:
    """Replace each directory that ``segment`` made by its training parts. Other paths stay as they are."""
    found: list[str] = []
    notes: list[str] = []
    for path in paths:
        listed = list_segmented_files(path) if storage.is_directory(path) else None
        if listed is None:
            found.append(path)
            continue
        # find_held_out recognises held-out files by their names: evaluation files, and test shards if there
        # are training shards.
        left_out = find_held_out(listed)
        found += [storage.join(path, name) for name in listed if name not in left_out]
        notes += _describe_left_out(path, left_out)
    return TrainingText(paths=found, notes=tuple(notes))


def list_segmented_files(directory: str) -> list[str] | None:
    """Return the text files of a directory that ``bertdata segment`` made, None for other directories."""
    where = storage.join(directory, MANIFEST_NAME)
    if not storage.exists(where):
        return None
    data = storage.read_bytes(where)
    if parse_json(data, where).get("kind") != TEXT_KIND:
        return None
    return [
        entry.name for entry in parse_text_manifest(data, where).files if not is_companion_list(entry.name)
    ]


def refuse_file_lists(paths: Iterable[str]) -> None:
    """Raise SettingsError for MD5SUMS and similar lists of this package, which are not text."""
    for path in paths:
        if storage.get_base_name(path) == MD5SUMS_NAME or is_companion_list(path):
            raise SettingsError(f"{path}: is a list of ours, expected text; {_suggest_training_text(path)}")


def refuse_held_out(files: Sequence[str]) -> None:
    """Raise SettingsError if any of the files is held out of training."""
    found = find_held_out(files)
    if found:
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        raise SettingsError(
            f"{found[0]}{more}: is held out of training, expected in a dataset of its own; "
            f"{_suggest_training_text(found[0])}"
        )


def _describe_left_out(directory: str, left_out: Sequence[str]) -> list[str]:
    """Return a message that says which test shards are left out. The list is empty if there are none.

    Evaluation files such as ``eval.txt`` are not mentioned.
    """
    pattern = make_test_pattern(left_out)
    if pattern is None:
        return []
    return [
        f"{directory}: its {len(left_out)} test shards are left out; make a dataset of their own of "
        f"{storage.join(directory, pattern)}"
    ]


def _suggest_training_text(path: str) -> str:
    """Return the end of an error message that advises which path to give instead of this one."""
    directory = storage.get_parent(path)
    if list_segmented_files(directory) is not None:
        return f"give {directory}, of which the parts to train on are taken"
    return "leave it out"
