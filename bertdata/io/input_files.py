"""The input files of a command: those that are named, and the wanted ones below named directories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.listing import left_out_lines, list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME
from bertdata.io.patterns import expand
from bertdata.io.real_paths import find_repeated

OTHERS = "other names than the input's"
_OURS = (MANIFEST_NAME, MD5SUMS_NAME)

Chosen = tuple[list[str], dict[str, list[str]]]
"""The names to read of a directory, and those that are left out, by reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFiles:
    """The files to read, sorted by path. notes: a line for each reason for which others are left out."""

    files: list[str]
    notes: tuple[str, ...] = ()


def find_input_files(
    sources: Sequence[str],
    choose: Callable[[str, list[str]], Chosen],
    *,
    missing: str,
    twice: str,
) -> InputFiles:
    """Find the files that paths, patterns and directories name.

    choose: the names to read of a directory, from its path and the names of its files. missing: the message
    for a directory with none. twice: what would happen to the contents of a file that is named twice.
    MissingInputError for a pattern or a directory without files, SettingsError for a file that is named
    twice, under whatever spelling.
    """
    files: list[str] = []
    notes: list[str] = []
    for path in expand(sources):
        if not storage.is_directory(path):
            files.append(path)
            continue
        listing = list_inputs(path)
        names, others = choose(path, listing.names)
        if not names:
            raise MissingInputError(f"{path}: {missing}{_held_instead(listing.names)}")
        files += [storage.join(path, name) for name in names]
        notes += left_out_lines(path, {**listing.left_out, **others})
    files.sort()
    refuse_repeated(files, twice)
    return InputFiles(files=files, notes=tuple(notes))


def _held_instead(names: Sequence[str]) -> str:
    """Return words on what a directory without fitting files holds, and how to have it read."""
    if not names:
        return "; it is empty"
    others = "" if len(names) == 1 else f" and {len(names) - 1} others"
    return f"; it holds {names[0]}{others}: name such files by a pattern and their kind by --input-kind"


def choose_named(names: Sequence[str], is_wanted: Callable[[str], bool]) -> Chosen:
    """Divide a directory's names into wanted ones and others, which do not count where they are ours."""
    wanted = [name for name in names if is_wanted(name)]
    others = [name for name in names if not is_wanted(name) and storage.base_name(name) not in _OURS]
    return wanted, {OTHERS: others} if others else {}


def refuse_repeated(files: Sequence[str], twice: str) -> None:
    """Raise SettingsError for a file that is named twice. twice: what would happen to its contents."""
    repeated = find_repeated(files)
    if repeated is None:
        return
    first, path = repeated
    also = "" if first == path else f", also as {path}"
    raise SettingsError(f"{first}: named twice{also}; {twice} twice; name it once")
