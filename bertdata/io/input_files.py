"""The list of a command's input files: files named by the user, and suitable files in named directories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.listing import describe_left_out, list_inputs
from bertdata.io.manifest_file import MANIFEST_NAME, MD5SUMS_NAME
from bertdata.io.patterns import expand_patterns
from bertdata.io.real_paths import find_repeated

OTHERS = "other names than the input's"
_OURS = (MANIFEST_NAME, MD5SUMS_NAME)

ChosenNames = tuple[list[str], dict[str, list[str]]]
"""The choice among a directory's files: names of the files to read, and names of the other files by reason.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFiles:
    """The input files to read, sorted by path.

    notes: for each reason why other files were left out, a line that tells the user.
    """

    files: list[str]
    notes: tuple[str, ...] = ()


def find_input_files(
    sources: Sequence[str],
    choose: Callable[[str, list[str]], ChosenNames],
    *,
    missing: str,
    twice: str,
) -> InputFiles:
    """Return the files that paths, patterns and directories name.

    Raises MissingInputError for a pattern or directory without files. Raises SettingsError for a file that is
    named twice, even with different spellings.

    sources: the paths, patterns and directories.
    choose: function that chooses the files to read in a directory. Its arguments are the directory's path and
        the names of its files.
    missing: error message for a directory without wanted files.
    twice: what would happen to the contents of a file named twice ("would be read"), for the error message.
    """
    files: list[str] = []
    notes: list[str] = []
    for path in expand_patterns(sources):
        if not storage.is_directory(path):
            files.append(path)
            continue
        listing = list_inputs(path)
        names, others = choose(path, listing.names)
        if not names:
            raise MissingInputError(f"{path}: {missing}{_describe_contents(listing.names)}")
        files += [storage.join(path, name) for name in names]
        notes += describe_left_out(path, {**listing.left_out, **others})
    files.sort()
    refuse_repeated(files, twice)
    return InputFiles(files=files, notes=tuple(notes))


def _describe_contents(names: Sequence[str]) -> str:
    """Return the end of an error message that says what a directory without suitable files holds."""
    if not names:
        return "; it is empty"
    others = "" if len(names) == 1 else f" and {len(names) - 1} others"
    return f"; it holds {names[0]}{others}: name such files by a pattern and their kind by --input-kind"


def choose_wanted_names(names: Sequence[str], is_wanted: Callable[[str], bool]) -> ChosenNames:
    """Divide a directory's file names into those to read and those to leave out.

    Manifests and MD5SUMS files appear in neither list.

    is_wanted: returns True for the name of a file to read.
    """
    wanted = [name for name in names if is_wanted(name)]
    others = [name for name in names if not is_wanted(name) and storage.get_base_name(name) not in _OURS]
    return wanted, {OTHERS: others} if others else {}


def refuse_repeated(files: Sequence[str], twice: str) -> None:
    """Raise SettingsError if a file is named twice.

    twice: what would happen to its contents, such as "would be read", for the error message.
    """
    repeated = find_repeated(files)
    if repeated is None:
        return
    first, path = repeated
    also = "" if first == path else f", also as {path}"
    raise SettingsError(f"{first}: named twice{also}; {twice} twice; name it once")
