"""Search for the files with which a lineage begins, by their md5s, in the sources that a user names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bertdata.errors import InputError, MissingInputError
from bertdata.io import storage
from bertdata.io.assets import find_cached_vocabulary, is_published_vocabulary
from bertdata.io.file_check import compute_file_md5
from bertdata.io.patterns import expand_patterns
from bertdata.lineages.flag_files import FOLDER_ROLES
from bertdata.lineages.step import EXPORT, FEATURES, FINETUNE, PRETRAIN, LineageFile, Step

_SMALL_BYTES = 1 << 26
"""Largest file whose md5 is compared with that of a file of unknown size, if the names differ."""

_NAMING_STEPS = (EXPORT, PRETRAIN, FINETUNE)
"""Steps that can be given a published vocabulary by its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NeededFile:
    """A file that a rebuild needs from its sources.

    step: the step that reads the file.
    role: what the step uses the file for.
    """

    step: Step
    role: str
    file: LineageFile

    def __str__(self) -> str:
        size = "" if self.file.bytes is None else f"{self.file.bytes} bytes, "
        return f"{self.role} {self.file.name} of {self.step.program}, {size}md5 {self.file.md5}"


class SourceFiles:
    """The files below the sources of a rebuild.

    Their md5s are computed only for files that may be the wanted ones, by their name or size.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Find the files. Raises MissingInputError if a source does not exist."""
        files = list(_list_source_files(paths))
        self._files = dict(zip(files, storage.map_paths(files, storage.read_size), strict=True))
        self._md5s: dict[str, str] = {}

    def find(self, file: LineageFile) -> str | None:
        """Return the path of the file with this md5, or None if no source has it."""
        return next((path for path in self._list_candidates(file) if self._get_md5(path) == file.md5), None)

    def find_namesake(self, file: LineageFile) -> tuple[str, str] | None:
        """Return path and md5 of a file with the same name and another md5, or None if there is none."""
        name = storage.get_base_name(file.name)
        return next(
            ((path, self._get_md5(path)) for path in self._files if storage.get_base_name(path) == name), None
        )

    def _list_candidates(self, file: LineageFile) -> list[str]:
        """Return the files that may be the wanted one. Those with the same name come first."""
        name = storage.get_base_name(file.name)
        most = _SMALL_BYTES if file.bytes is None else file.bytes
        fits = {
            path: size <= most if file.bytes is None else size == file.bytes
            for path, size in self._files.items()
        }
        return sorted(
            (path for path, is_fit in fits.items() if is_fit),
            key=lambda path: (storage.get_base_name(path) != name, path),
        )

    def _get_md5(self, path: str) -> str:
        """Return the md5 of a file, which is computed once."""
        if path not in self._md5s:
            self._md5s[path] = compute_file_md5(path)
        return self._md5s[path]


def _list_source_files(paths: Sequence[str]) -> Iterator[str]:
    """Yield every file that the paths name: files, patterns, and all files below directories."""
    for path in expand_patterns(list(paths)):
        if storage.is_directory(path):
            yield from (storage.join(path, name) for name in storage.list_files(path))
        else:
            yield path


def list_needed_files(steps: Iterable[Step]) -> list[NeededFile]:
    """Return the source files that steps read, each file once.

    Files with the same contents and other names count separately, because outputs may depend on names. So
    does a file that must lie in one directory with the other files of a tokeniser.
    Two kinds of vocabularies are not among them: those of features, because a fine-tuned run takes that of
    the model from which it starts, and published ones that an export or a run named by their name.
    """
    found: dict[tuple[bool, LineageFile], NeededFile] = {}
    for step in steps:
        for one in step.inputs:
            if not one.source or (step.name, one.role) == (FEATURES, "vocabulary"):
                continue
            for file in one.files:
                if step.name in _NAMING_STEPS and is_published_vocabulary(file.name, str(file.md5)):
                    continue
                key = (one.role in FOLDER_ROLES, file)
                found.setdefault(key, NeededFile(step=step, role=one.role, file=file))
    return list(found.values())


def find_source_files(
    needed: Sequence[NeededFile], sources: SourceFiles, kept: SourceFiles | None = None
) -> dict[LineageFile, str]:
    """Return the path of each needed file.

    kept: files that the artefact itself keeps, such as the copy of the vocabulary in a dataset. They are
        taken if the sources lack a vocabulary.

    Raises InputError if a source has a file of the needed name with another md5, and MissingInputError if
    there is no such file at all.
    """
    found: dict[LineageFile, str] = {}
    for one in needed:
        path = sources.find(one.file)
        if path is None and one.role == "vocabulary":
            path = (kept and kept.find(one.file)) or find_cached_vocabulary(str(one.file.md5))
        if path is None:
            raise _make_missing_error(one, sources)
        found[one.file] = path
    return found


def _make_missing_error(needed: NeededFile, sources: SourceFiles) -> InputError | MissingInputError:
    """Return the error for a file that no source has."""
    namesake = sources.find_namesake(needed.file)
    if namesake is not None:
        path, md5 = namesake
        return InputError(f"{path}: is not the {needed}: found md5 {md5}")
    return MissingInputError(f"the {needed}, is not among the sources; name it with --from")
