"""Files that hold the sorted documents of each part until the shards are gathered from them.

With these files, a process needs only one part or one shard in memory, however large the corpus is.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bertdata.build.documents import DocumentReader
from bertdata.build.shard_task import TaskPlan, warn_of_left_out
from bertdata.build.shuffle.keys import (
    SortedDocuments,
    convert_to_little_endian,
    read_little_endian,
    sort_documents,
)
from bertdata.dataset.manifest import InputEntry, SkippedEntry
from bertdata.errors import InputError, ManifestError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.entry_json import parse_entry, parse_numbers
from bertdata.io.scratch_files import KeptFiles, ScratchFiles
from bertdata.records import Buffer


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedFile:
    """A file with the documents of one part, sorted by key.

    The first ``record_bytes`` bytes are the documents' records, in the format that SortedDocuments describes.
    Then follow the key prefixes, starts and numbers of tokens of all documents (uint64, little-endian).
    """

    path: str
    record_bytes: int
    documents: int

    def index(self) -> tuple[Buffer, Buffer, Buffer]:
        """Read the file's index: the key prefix, start and number of tokens of each document."""
        with storage.open_input(self.path) as file:
            file.seek(self.record_bytes)
            columns = [read_little_endian("Q", file.read(8 * self.documents)) for _ in range(3)]
        return columns[0], columns[1], columns[2]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The documents of one shard as pieces of sorted files. Calling the object reads them.

    places: three numbers per piece (uint64): index of its file in ``paths``, first byte, end.
    """

    paths: tuple[str, ...]
    places: Buffer

    def __call__(self) -> Iterator[bytes]:
        """Read each piece of the files and yield its bytes."""
        for at in range(0, len(self.places), 3):
            number, start, stop = self.places[at : at + 3]
            with storage.open_input(self.paths[number]) as file:
                file.seek(start)
                yield file.read(stop - start)


@dataclass(frozen=True, kw_only=True, slots=True)
class PartSortTask:
    """The task of sorting one part into a file.

    folder: directory for the file. None means ``unfinished/``, where a later run can find it.
    """

    plan: TaskPlan
    part: str
    folder: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SortResult:
    """A sorted part: its manifest entry, warnings, and the file. A part that is left out has no file."""

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...] = ()
    file: SortedFile | None = None
    is_kept: bool = False

    @property
    def line(self) -> str:
        """Progress line about the part."""
        if self.file is None:
            return f"skipped {self.entry.name}"
        return f"kept {self.entry.name}, sorted before" if self.is_kept else f"sorted {self.entry.name}"


def find_scratch_directory(plan: TaskPlan) -> Commit:
    """Return the directory that holds the sorted files.

    It belongs to the last target dataset. Its scratch files stay until all targets are finished, since this
    target is finished last.
    """
    return plan.targets[-1].dataset.commit


def sort_to_file(task: PartSortTask) -> SortResult:
    """Sort the task's part into a file, or keep the file that an earlier run made from the same bytes."""
    reader = task.plan.reader(task.part)
    scratch = ScratchFiles(
        commit=find_scratch_directory(task.plan),
        name=reader.name,
        source=reader.input_md5() if task.folder is None else "",
        folder=task.folder,
    )
    if (kept := scratch.kept()) is not None and (result := _restore_result(kept)) is not None:
        return result
    found = sort_part(task.plan, task.part, reader)
    if found.documents is None:
        return SortResult(entry=found.entry, warnings=found.warnings)
    assert isinstance(found.entry, InputEntry)
    file = _write_sorted(scratch, found.entry, found.documents)
    return SortResult(entry=found.entry, warnings=found.warnings, file=file)


def _write_sorted(scratch: ScratchFiles, entry: InputEntry, documents: SortedDocuments) -> SortedFile:
    """Write the sorted documents to a scratch file and note it as complete."""
    with scratch.open() as sink:
        sink.write(documents.records)
        for column in (documents.prefixes, documents.starts, documents.tokens):
            sink.write(convert_to_little_endian(column))
    scratch.note([sink.entry], input=asdict(entry), record_bytes=len(documents.records))
    return SortedFile(path=sink.path, record_bytes=len(documents.records), documents=entry.documents)


def _restore_result(found: KeptFiles) -> SortResult | None:
    """Make the result of an earlier run from its note.

    Returns None if another version wrote the note in another format.
    """
    try:
        entry = parse_entry(InputEntry, found.note.get("input"))
        (record_bytes,) = parse_numbers([found.note.get("record_bytes")])
        (path,) = found.paths
    except (ManifestError, ValueError):
        return None
    made = SortedFile(path=path, record_bytes=record_bytes, documents=entry.documents)
    return SortResult(entry=entry, file=made, is_kept=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedPart:
    """A sorted part in memory.

    documents: None if the part is left out.
    """

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...]
    documents: SortedDocuments | None = None


def sort_part(plan: TaskPlan, path: str, reader: DocumentReader | None = None) -> SortedPart:
    """Tokenise a part and sort its documents by key.

    reader: reader of the part, if the caller has one.
    """
    reader = reader or plan.reader(path)
    try:
        loaded = reader.load(plan.targets[0].settings)
    except InputError as error:
        if not plan.skip_bad:
            raise
        skipped = reader.skipped(error)
        return SortedPart(entry=skipped, warnings=(warn_of_left_out(path, skipped),))
    documents = sort_documents(loaded.documents, loaded.entry.name)
    return SortedPart(entry=loaded.entry, warnings=loaded.warnings, documents=documents)
