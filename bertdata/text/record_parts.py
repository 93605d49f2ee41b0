"""Write the parts of a run over records: text files of at most a configured size.

The parts are named ``part-00000.txt``, ``part-00001.txt`` and so on. The numbers do not depend on the names
of the input files, so the names and bytes of the parts depend on the text alone.

For each finished part, a note (a small JSON file) stores the position of the document after it. An
interrupted run resumes there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from shutil import copyfileobj
from typing import Any, NamedTuple

from bertdata.config.held_out_names import REMOVED, make_record_part_name
from bertdata.errors import InputError, ManifestError
from bertdata.io import storage
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, HashingSink, compute_md5, matches_entry
from bertdata.io.file_identity import FileIdentity, check_all_unchanged
from bertdata.io.manifest_file import dump_json
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.numbered_piece import NumberedPiece
from bertdata.text.record_cuts import PartAssignment
from bertdata.text.record_documents import PieceText, PieceToDocuments
from bertdata.text.record_held_out import encode_held_out_texts, read_held_out_texts, write_held_out
from bertdata.text.record_plan import RecordPlan, plan_pieces
from bertdata.text.record_text import make_bad_record_error
from bertdata.text.selection.duplicates import DuplicateList
from bertdata.text.selection.removed import format_removed_records
from bertdata.text.settings import LEFT_OUT_COUNTS, SegmentCounts

_ASSIGNMENT_VERSION = 3
"""Version of the way in which documents are assigned to parts. Notes of another version are ignored."""

_PART, _EVAL = "part", "eval"
"""Kinds of files that are written while a part is made.

They are the part itself, and scratch files for held-out documents (_EVAL) and for the list of removed records
(REMOVED).
"""


class NextDocument(NamedTuple):
    """Position at which a later run must resume: the first document that is in no finished part.

    file: number of the file, from 0.
    piece: number of the piece (a group of records) in the file, from 0.
    document: number of the document in the piece, from 0.
    numbers: number of records in the file before this piece. For JSON lines it is the number of lines, also
        of blank lines.
    """

    file: int = 0
    piece: int = 0
    document: int = 0
    numbers: int = 0


def make_no_text_error(
    files: Sequence[str], counts: Sequence[SegmentCounts], first: InputError | None
) -> InputError:
    """Return the error for files without any document to train on.

    counts: counts of each file, from which the error lists why records were left out.
    first: error about the first bad record. None if no record is bad.
    """
    told = [(name, sum(getattr(one, name) for one in counts)) for name in LEFT_OUT_COUNTS]
    found = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in told if number)
    if not found:
        return InputError(f"{files[0]}: no record with text found, here or in other files")
    told_first = "" if first is None else f"; the first bad one is {first}"
    return InputError(
        f"{files[0]}: no record is left to train on, here or in other files: {found}{told_first}"
    )


class RecordParts:
    """All parts of a run: first the parts that an earlier run finished and that are still intact, then new
    parts.

    counts: counts of each file, complete when all parts are written.
    unsplit: number of documents of each language without a sentence splitter, by ISO 639-1 code.
    made: manifest entries of the finished parts.
    identities: size, time and md5 of each input file when the run began, to detect later changes.
    sources: md5 of the names and md5s of all input files.
    progress: function that is called after each finished piece, with the number of its file and its size in
        bytes.
    """

    def __init__(
        self,
        text: TextDirectory[RecordPlan],
        identities: Sequence[FileIdentity],
        progress: Callable[[int, int], None],
    ) -> None:
        self.counts = [SegmentCounts(files=1) for _ in text.plan.files]
        self.unsplit: Counter[str] = Counter()
        self.made: list[FileEntry] = []
        self.sources = compute_md5(
            dump_json({"names": text.plan.inputs, "md5s": [one.md5 for one in identities]})
        )
        self._text = text
        self._identities = identities
        self._unchecked = 0  # number of the first file that was not yet checked for changes
        self._progress = progress
        self._next = NextDocument()
        self._new_counts: dict[int, SegmentCounts] = {}
        self._new_unsplit: Counter[str] = Counter()
        self._waiting: list[str] = []
        self._first_error: InputError | None = None
        self._resume()

    def _resume(self) -> None:
        """Keep the parts of an earlier run, up to the first part that is missing or changed."""
        while (note := self._text.commit.read_note(make_record_part_name(len(self.made)))) is not None:
            try:
                entries = parse_entry_list(FileEntry, note.get("files"))
            except ManifestError:
                return
            same = (note.get("scheme"), note.get("sources")) == (_ASSIGNMENT_VERSION, self.sources)
            if not same or not all(matches_entry(self._text.commit.directory, entry) for entry in entries):
                return
            self._add_part(entries)
            self._next = NextDocument(*note["next"])
            for file, counts in note["counts"].items():
                self.counts[int(file)].add(SegmentCounts(**counts))
            self.unsplit.update(note.get("unsplit", {}))

    def _add_part(self, entries: Sequence[FileEntry]) -> None:
        """Add a finished part to the result, and remember its scratch files for ``write_other_files``."""
        self.made.append(entries[0])
        self._waiting += [entry.name for entry in entries[1:]]

    def write(self, pool: ProcessPool, step: PieceToDocuments, duplicates: DuplicateList | None) -> None:
        """Write the remaining parts.

        Raises InputError if no record has text, and for an unusable record unless such records are skipped.
        """
        skips = step.settings.records.skip_bad_records
        # Workers turn pieces into documents. The results come in order, so the bytes do not depend on the
        # workers.
        results = pool.in_order(step, self._list_remaining_pieces(step, duplicates))
        with ExitStack() as stack:
            writer = _PartWriter(self, stack)
            for work, found in results:
                # Keep self._next up to date: it is written into a part's note, and tells a later run where to
                # resume.
                if work.file > self._next.file:
                    self._next = NextDocument(file=work.file)
                if found.first_bad is not None and self._first_error is None:
                    self._first_error = make_bad_record_error(
                        work.path, self._next.numbers, found.first_bad, skips=skips
                    )
                if self._first_error is not None and not skips:
                    raise self._first_error
                writer.add(found, work, self._next.numbers)
                self.counts[work.file].add(found.counts)
                self._new_counts.setdefault(work.file, SegmentCounts()).add(found.counts)
                self.unsplit.update(found.unsplit)
                self._new_unsplit.update(found.unsplit)
                numbers = self._next.numbers + found.numbers
                self._next = NextDocument(work.file, work.number + 1, 0, numbers)
                self._progress(work.file, work.piece.bytes)
            writer.finish()
            if not self.made:
                raise make_no_text_error(self._text.plan.files, self.counts, self._first_error)

    def _list_remaining_pieces(
        self, step: PieceToDocuments, duplicates: DuplicateList | None
    ) -> Iterator[NumberedPiece]:
        """Yield the pieces that contain documents which are in no finished part."""
        first = self._next
        for work in plan_pieces(self._text.plan):
            if (work.file, work.number) >= (first.file, first.piece):
                yield work if duplicates is None else duplicates.add_duplicates(work)

    def find_start(self, work: NumberedPiece) -> int:
        """Return the index of the piece's first document that is in no finished part."""
        here = (work.file, work.number) == (self._next.file, self._next.piece)
        return self._next.document if here else 0

    def check_sources(self, work: NumberedPiece | None) -> None:
        """Raise ChangedInputError if a file that was read so far has changed since its md5 was computed.

        work: piece that is being written. None: all files were read to the end.
        """
        last = len(self._identities) - 1 if work is None else work.file
        check_all_unchanged(self._identities[self._unchecked : last + 1])
        self._unchecked = last

    def note(self, entries: Sequence[FileEntry], work: NumberedPiece | None, document: int) -> None:
        """Write the note of a finished part, from which a later run can resume.

        entries: manifest entries of the part and of its scratch files.
        work: piece of the first document after the part. None after the last part.
        document: index of this document in the piece.
        """
        if work is not None:
            self._next = self._next._replace(file=work.file, piece=work.number, document=document)
        self._add_part(entries)
        counts = {str(file): _drop_zero_counts(counts) for file, counts in self._new_counts.items()}
        self._text.commit.note(
            entries[0].name,
            {
                "files": [entry._asdict() for entry in entries],
                "scheme": _ASSIGNMENT_VERSION,
                "sources": self.sources,
                "next": list(self._next),
                "counts": counts,
                "unsplit": dict(self._new_unsplit),
            },
        )
        self._new_counts.clear()
        self._new_unsplit.clear()

    def write_other_files(self) -> list[FileEntry]:
        """Write the held-out documents and the list of removed records, and return their manifest entries."""
        paths = {
            kind: [
                self._text.commit.path(name)
                for name in self._waiting
                if name.endswith(_make_scratch_ending(kind))
            ]
            for kind in (_EVAL, REMOVED)
        }
        made = write_held_out(self._text, read_held_out_texts(paths[_EVAL]), self.part_bytes)
        if not paths[REMOVED]:
            return made
        self._text.commit.note(REMOVED, {})
        with self._text.open(REMOVED) as file:
            for path in paths[REMOVED]:
                with storage.open_input(path) as waiting:
                    copyfileobj(waiting, file)
        return [*made, file.entry(REMOVED)]

    def open(self, kind: str, stack: ExitStack) -> tuple[str, HashingSink]:
        """Open the next part, or a scratch file for it, and return the file's name and writer.

        The file appears under its name when the stack is closed.

        kind: what to open: _PART, _EVAL or REMOVED.
        """
        name = make_record_part_name(len(self.made))
        if kind != _PART:
            name = self._text.commit.scratch_name(f"{name}.{kind}")
        return name, stack.enter_context(self._text.open(name))

    @property
    def part_bytes(self) -> float:
        """Largest size of a part in bytes of text."""
        return self._text.plan.settings.part_bytes

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the input files in the manifest."""
        return self._text.plan.inputs


class _PartWriter:
    """Writer that fills the current part with documents, and opens the next part when it is full.

    Held-out documents and the list of removed records go to scratch files. Each part has its own scratch
    files, so that they are kept or lost together with the part.
    """

    def __init__(self, parts: RecordParts, stack: ExitStack) -> None:
        self._parts = parts
        self._cuts = PartAssignment(parts.part_bytes, len(parts.made))
        self._outer = stack
        self._stack = stack.enter_context(ExitStack())
        self._sinks: dict[str, tuple[str, HashingSink]] = {}

    def add(self, found: PieceText, work: NumberedPiece, before: int) -> None:
        """Write the documents of a piece, except documents that an earlier run wrote into a finished part.

        found: the documents.
        work: the piece.
        before: number of records in the file before the piece.
        """
        # An earlier run may have finished a part in the middle of this piece. Its documents before ``first``
        # are then in that part, and the rest of the text starts where document ``first - 1`` ends.
        first, texts = self._parts.find_start(work), found.training
        ends = [texts.ends[first - 1] if first else 0, *texts.ends[first:]]
        for run in self._cuts.assign_documents(texts.sizes[first:]):
            if run.part > len(self._parts.made):
                # This run of documents starts a new part, so close the current part before writing.
                self.finish(work, first + run.start)
            self._write(_PART, texts.text[ends[run.start] : ends[run.stop]])
        if found.withheld.sizes:
            self._write(_EVAL, encode_held_out_texts(found.withheld))
        if found.removed:
            self._write(REMOVED, format_removed_records(found.removed, work.file, before, self._parts.inputs))

    def _write(self, kind: str, data: bytes) -> None:
        """Write bytes to the current part or to one of its scratch files, which is opened first if necessary.

        kind: the file to write to: _PART, _EVAL or REMOVED.
        """
        if kind not in self._sinks:
            self._sinks[kind] = self._parts.open(kind, self._stack)
        self._sinks[kind][1].write(data)

    def finish(self, work: NumberedPiece | None = None, document: int = 0) -> None:
        """Close the current part and write its note. Does nothing if no part is open.

        work: piece of the document that starts the next part. None: there is no next part.
        document: index of this document in the piece.
        """
        if _PART not in self._sinks:
            return
        self._parts.check_sources(work)  # a part made from changed input must not appear
        self._stack.close()
        opened = [self._sinks[kind] for kind in (_PART, _EVAL, REMOVED) if kind in self._sinks]
        self._parts.note([sink.entry(name) for name, sink in opened], work, document)
        self._stack = self._outer.enter_context(ExitStack())
        self._sinks = {}


def _make_scratch_ending(kind: str) -> str:
    """Return the ending of the names of scratch files of this kind."""
    return f".{kind}.scratch"


def _drop_zero_counts(counts: SegmentCounts) -> dict[str, Any]:
    """Return the counts that are not 0, by name."""
    return {name: value for name, value in asdict(counts).items() if value}
