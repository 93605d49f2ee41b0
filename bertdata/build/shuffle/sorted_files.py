"""Files with the sorted documents of each part, which exist until the shards are collected from them.

With these files, a process holds only one part (input file) or one shard in memory, however much text there
is.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bertdata.build.documents import DocumentReader
from bertdata.build.shard_task import TaskPlan, make_skipped_warning
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
from bertdata.io.entry_json import parse_entry, parse_number_list
from bertdata.io.scratch_files import KeptFiles, ScratchFiles
from bertdata.records import Buffer


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedFile:
    """A file with the documents of one part, sorted by key.

    The first ``record_bytes`` bytes of the file are the records of the documents, in the format that
    SortedDocuments describes. The index follows, which consists of the key prefixes, the starts of the
    records and the numbers of tokens of all documents (uint64, little-endian).
    """

    path: str
    record_bytes: int
    documents: int

    def index(self) -> tuple[Buffer, Buffer, Buffer]:
        """Read the index of the file and return, for each document, the key prefix, record start and number
        of tokens.
        """
        with storage.open_input(self.path) as file:
            file.seek(self.record_bytes)
            columns = [read_little_endian("Q", file.read(8 * self.documents)) for _ in range(3)]
        return columns[0], columns[1], columns[2]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The documents of one shard, as ranges of bytes (pieces) of sorted files.

    The object is called to read the pieces.

    paths: the sorted files.
    places: three numbers for each piece (uint64): the index of its file in ``paths``, its first byte and its
        end.
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
    """The task of sorting the documents of one part into a file.

    folder: directory for the file. None means the dataset's ``unfinished/``, where a later run can find the
        file.
    """

    plan: TaskPlan
    part: str
    folder: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SortResult:
    """The result of sorting one part.

    entry: manifest entry of the part.
    file: the sorted file. None if the part was left out.
    warnings: lines for the user.
    """

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...] = ()
    file: SortedFile | None = None
    is_kept: bool = False

    @property
    def line(self) -> str:
        """Line of text that reports the part as sorted or left out."""
        if self.file is None:
            return f"skipped {self.entry.name}"
        return f"kept {self.entry.name}, sorted before" if self.is_kept else f"sorted {self.entry.name}"


def find_scratch_directory(plan: TaskPlan) -> Commit:
    """Return the dataset directory that the sorted files are written to.

    It is the directory of the run's last dataset. This dataset is finished last, so the files stay until the
    other datasets no longer need them.
    """
    return plan.targets[-1].dataset.commit


def sort_to_file(task: PartSortTask) -> SortResult:
    """Sort the documents of a part into a file.

    If an earlier run made the file from the same bytes, it is kept.
    """
    reader = task.plan.make_reader(task.part)
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
    """Write the sorted documents to a scratch file and record the file as complete."""
    with scratch.open() as sink:
        sink.write(documents.records)
        for column in (documents.prefixes, documents.starts, documents.tokens):
            sink.write(convert_to_little_endian(column))
    scratch.note([sink.entry], input=asdict(entry), record_bytes=len(documents.records))
    return SortedFile(path=sink.path, record_bytes=len(documents.records), documents=entry.documents)


def _restore_result(found: KeptFiles) -> SortResult | None:
    """Return the result of an earlier run from the note that it left.

    Returns None if another version of bertdata wrote the note in another format.
    """
    try:
        entry = parse_entry(InputEntry, found.note.get("input"))
        (record_bytes,) = parse_number_list([found.note.get("record_bytes")])
        (path,) = found.paths
    except (ManifestError, ValueError):
        return None
    made = SortedFile(path=path, record_bytes=record_bytes, documents=entry.documents)
    return SortResult(entry=entry, file=made, is_kept=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class SortedPart:
    """The sorted documents of a part in memory.

    documents: the sorted documents. None if the part was left out.
    """

    entry: InputEntry | SkippedEntry
    warnings: tuple[str, ...]
    documents: SortedDocuments | None = None


def sort_part(plan: TaskPlan, path: str, reader: DocumentReader | None = None) -> SortedPart:
    """Tokenise a part and sort its documents by key.

    reader: reader of the part. None makes a new reader.
    """
    reader = reader or plan.make_reader(path)
    try:
        loaded = reader.load(plan.targets[0].settings)
    except InputError as error:
        if not plan.skip_bad:
            raise
        skipped = reader.make_skipped_entry(error)
        return SortedPart(entry=skipped, warnings=(make_skipped_warning(path, skipped),))
    documents = sort_documents(loaded.documents, loaded.entry.name)
    return SortedPart(entry=loaded.entry, warnings=loaded.warnings, documents=documents)
