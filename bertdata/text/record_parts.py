"""Parts of records: documents one after another, a new part where the next one would be too much.

::

    part-00000.txt part-00001.txt ...   named by number alone, so that name and bytes follow from the text

A part is noted with the place behind its last document, at which a run that is taken up goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from shutil import copyfileobj
from typing import Any, NamedTuple

from bertdata.config.text_file_names import REMOVED, record_part_name
from bertdata.errors import InputError, ManifestError
from bertdata.io import storage
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, HashingSink, fits, md5_of
from bertdata.io.file_identity import FileIdentity, check_all
from bertdata.io.manifest_file import dump_json
from bertdata.io.process_pool import ProcessPool
from bertdata.text.directory import TextDirectory
from bertdata.text.numbered_piece import NumberedPiece
from bertdata.text.record_cuts import PartCuts
from bertdata.text.record_documents import PieceText, PieceToDocuments
from bertdata.text.record_held_out import read_waiting, waiting_texts, write_held_out
from bertdata.text.record_plan import RecordPlan, plan_pieces
from bertdata.text.record_text import bad_record_error
from bertdata.text.selection.duplicates import DuplicateList
from bertdata.text.selection.removed import removed_lines
from bertdata.text.settings import LEFT_OUT_COUNTS, SegmentCounts

_SCHEME = 3
"""Of the pieces that files are divided into: notes of another one are of no use."""

_PART, _EVAL = "part", "eval"
"""Kinds of files that are written at once, beside REMOVED."""


class NextDocument(NamedTuple):
    """A place in the sources: numbers of the file, of its piece, of the document in that, all from 0.

    numbers: of records that the file's pieces before took.
    """

    file: int = 0
    piece: int = 0
    document: int = 0
    numbers: int = 0


def no_text_error(files: Sequence[str], counts: Sequence[SegmentCounts]) -> InputError:
    """The error of files of which no document is left to train on. counts: of each."""
    told = [(name, sum(getattr(one, name) for one in counts)) for name in LEFT_OUT_COUNTS]
    found = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in told if number)
    if not found:
        return InputError(f"{files[0]}: no record with text found, here or in other files")
    return InputError(f"{files[0]}: no record is left to train on, here or in other files: {found}")


class RecordParts:
    """The parts of a run: those of an earlier one that fit, then new ones.

    counts: of each file, complete at the end; identities: of the files, with their md5s. progress: told each
    piece's file and bytes.
    """

    def __init__(
        self,
        text: TextDirectory[RecordPlan],
        identities: Sequence[FileIdentity],
        progress: Callable[[int, int], None],
    ) -> None:
        self.counts = [SegmentCounts(files=1) for _ in text.plan.files]
        self.made: list[FileEntry] = []
        self.sources = md5_of(dump_json({"names": text.plan.inputs, "md5s": [one.md5 for one in identities]}))
        self._text = text
        self._identities = identities
        self._unchecked = 0  # the first file that may have been read since it was checked last
        self._progress = progress
        self._next = NextDocument()
        self._new_counts: dict[int, SegmentCounts] = {}
        self._waiting: list[str] = []
        self._take_up()

    def _take_up(self) -> None:
        """Keep the first parts of an earlier run, as many as fit."""
        while (note := self._text.commit.read_note(record_part_name(len(self.made)))) is not None:
            try:
                entries = parse_entry_list(FileEntry, note.get("files"))
            except ManifestError:
                return
            same = (note.get("scheme"), note.get("sources")) == (_SCHEME, self.sources)
            if not same or not all(fits(self._text.commit.directory, entry) for entry in entries):
                return
            self._keep(entries)
            self._next = NextDocument(*note["next"])
            for file, counts in note["counts"].items():
                self.counts[int(file)].add(SegmentCounts(**counts))

    def _keep(self, entries: Sequence[FileEntry]) -> None:
        """Take a part that is finished, and the waiting files beside it."""
        self.made.append(entries[0])
        self._waiting += [entry.name for entry in entries[1:]]

    def write(self, pool: ProcessPool, step: PieceToDocuments, duplicates: DuplicateList | None) -> None:
        """Write the rest of the parts. InputError where no record has text, and for a bad record."""
        skips = step.settings.records.skip_bad_records
        results = pool.in_order(step, self._pieces(step, duplicates))
        with ExitStack() as stack:
            writer = _PartWriter(self, stack)
            for work, found in results:
                if work.file > self._next.file:
                    self._next = NextDocument(file=work.file)
                if found.first_bad is not None and not skips:
                    raise bad_record_error(work.path, self._next.numbers, found.first_bad)
                writer.add(found, work, self._next.numbers)
                self.counts[work.file].add(found.counts)
                self._new_counts.setdefault(work.file, SegmentCounts()).add(found.counts)
                numbers = self._next.numbers + found.numbers
                self._next = NextDocument(work.file, work.number + 1, 0, numbers)
                self._progress(work.file, work.piece.bytes)
            writer.finish()
            if not self.made:
                raise no_text_error(self._text.plan.files, self.counts)

    def _pieces(self, step: PieceToDocuments, duplicates: DuplicateList | None) -> Iterator[NumberedPiece]:
        first = self._next
        for work in plan_pieces(self._text.plan):
            if (work.file, work.number) >= (first.file, first.piece):
                yield work if duplicates is None else duplicates.marked(work)

    def start_of(self, work: NumberedPiece) -> int:
        """The number of the piece's first document that is in no part yet."""
        here = (work.file, work.number) == (self._next.file, self._next.piece)
        return self._next.document if here else 0

    def check_sources(self, work: NumberedPiece | None) -> None:
        """Check the files that were read up to this piece. ChangedInputError for one that was changed."""
        last = len(self._identities) - 1 if work is None else work.file
        check_all(self._identities[self._unchecked : last + 1])
        self._unchecked = last

    def note(self, entries: Sequence[FileEntry], work: NumberedPiece | None, document: int) -> None:
        """Note a part, and its waiting files, that ends before this document of the piece."""
        if work is not None:
            self._next = self._next._replace(file=work.file, piece=work.number, document=document)
        self._keep(entries)
        counts = {str(file): _told(counts) for file, counts in self._new_counts.items()}
        self._text.commit.note(
            entries[0].name,
            {
                "files": [entry._asdict() for entry in entries],
                "scheme": _SCHEME,
                "sources": self.sources,
                "next": list(self._next),
                "counts": counts,
            },
        )
        self._new_counts.clear()

    def write_others(self) -> list[FileEntry]:
        """Write the parts of documents held out, and the list of removed records. Returns their entries."""
        paths = {
            kind: [
                self._text.commit.path(name) for name in self._waiting if name.endswith(_waiting_end(kind))
            ]
            for kind in (_EVAL, REMOVED)
        }
        made = write_held_out(self._text, read_waiting(paths[_EVAL]), self.part_bytes)
        if not paths[REMOVED]:
            return made
        self._text.commit.note(REMOVED, {})
        with self._text.open(REMOVED) as file:
            for path in paths[REMOVED]:
                with storage.open_input(path) as waiting:
                    copyfileobj(waiting, file)
        return [*made, file.entry(REMOVED)]

    def open(self, kind: str, stack: ExitStack) -> tuple[str, HashingSink]:
        """The next part, or a waiting file beside it, opened. It appears when the stack is closed."""
        name = record_part_name(len(self.made))
        if kind != _PART:
            name = self._text.commit.scratch_name(f"{name}.{kind}")
        return name, stack.enter_context(self._text.open(name))

    @property
    def part_bytes(self) -> float:
        return self._text.plan.settings.part_bytes

    @property
    def inputs(self) -> Sequence[str]:
        return self._text.plan.inputs


class _PartWriter:
    """Writes documents into the part that is open, and opens the next one where it is full.

    Documents held out, and lines on removed records, wait in files beside the part in which their piece ends.
    """

    def __init__(self, parts: RecordParts, stack: ExitStack) -> None:
        self._parts = parts
        self._cuts = PartCuts(parts.part_bytes, len(parts.made))
        self._outer = stack
        self._stack = stack.enter_context(ExitStack())
        self._sinks: dict[str, tuple[str, HashingSink]] = {}

    def add(self, found: PieceText, work: NumberedPiece, before: int) -> None:
        """Write the documents of a piece that are in no part yet. before: records of the file before it."""
        first, texts = self._parts.start_of(work), found.training
        ends = [texts.ends[first - 1] if first else 0, *texts.ends[first:]]
        for run in self._cuts.runs(texts.sizes[first:]):
            if run.part > len(self._parts.made):
                self.finish(work, first + run.start)
            self._write(_PART, texts.text[ends[run.start] : ends[run.stop]])
        if found.withheld.sizes:
            self._write(_EVAL, waiting_texts(found.withheld))
        if found.removed:
            self._write(REMOVED, removed_lines(found.removed, work.file, before, self._parts.inputs))

    def _write(self, kind: str, data: bytes) -> None:
        if kind not in self._sinks:
            self._sinks[kind] = self._parts.open(kind, self._stack)
        self._sinks[kind][1].write(data)

    def finish(self, work: NumberedPiece | None = None, document: int = 0) -> None:
        """End the part that is open. work, document: the one that begins the next part."""
        if _PART not in self._sinks:
            return
        self._parts.check_sources(work)  # before the part appears
        self._stack.close()
        opened = [self._sinks[kind] for kind in (_PART, _EVAL, REMOVED) if kind in self._sinks]
        self._parts.note([sink.entry(name) for name, sink in opened], work, document)
        self._stack = self._outer.enter_context(ExitStack())
        self._sinks = {}


def _waiting_end(kind: str) -> str:
    return f".{kind}.scratch"


def _told(counts: SegmentCounts) -> dict[str, Any]:
    return {name: value for name, value in asdict(counts).items() if value}
