"""Parts of records: documents one after another, a new part where the next one would be too much.

::

    part-00000.txt part-00001.txt ...   named by number alone, so that name and bytes follow from the text

A part is noted with the place behind its last document, at which a run that is taken up goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from bertdata.errors import InputError, ManifestError
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, HashingSink, fits, md5_of
from bertdata.io.manifest_file import dump_json
from bertdata.io.process_pool import ProcessPool
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.sources.records import REASONS, BadRecord
from bertdata.text.directory import TextDirectory
from bertdata.text.record_cuts import PartCuts
from bertdata.text.record_documents import NumberedPiece, PieceText, RecordStep
from bertdata.text.record_plan import RecordPlan
from bertdata.text.settings import SegmentCounts

_SCHEME = 1
"""Of the pieces that files are divided into: notes of another one are of no use."""


class NextDocument(NamedTuple):
    """A place in the sources: numbers of the file, of its piece, of the document in that, all from 0.

    numbers: of records that the file's pieces before took.
    """

    file: int = 0
    piece: int = 0
    document: int = 0
    numbers: int = 0


def part_name(number: int) -> str:
    """The part's name, from its number from 0."""
    return f"part-{number:05d}.txt"


def bad_record_error(path: str, numbers: int, bad: BadRecord) -> InputError:
    """The error of a file's record. numbers: of records that its pieces before took."""
    return InputError(
        f"{path}: record {numbers + bad.number}: {bad.fault}; repair it, or leave such records out: "
        "--skip-bad-records"
    )


def no_text_error(files: Sequence[str]) -> InputError:
    """The error of files in which no record has text."""
    return InputError(f"{files[0]}: no record with text found, here or in other files")


class RecordParts:
    """The parts of a run: those of an earlier one that fit, then new ones.

    counts: of each file, complete at the end; md5s: of the files. progress: told each piece's file and bytes.
    """

    def __init__(
        self, text: TextDirectory[RecordPlan], md5s: Sequence[str], progress: Callable[[int, int], None]
    ) -> None:
        self.counts = [SegmentCounts(files=1) for _ in text.plan.files]
        self.made: list[FileEntry] = []
        self._text = text
        self._sources = md5_of(dump_json({"names": text.plan.inputs, "md5s": list(md5s)}))
        self._progress = progress
        self._next = NextDocument()
        self._new_counts: dict[int, SegmentCounts] = {}
        self._take_up()

    def _take_up(self) -> None:
        """Keep the first parts of an earlier run, as many as fit."""
        while (note := self._text.commit.read_note(part_name(len(self.made)))) is not None:
            try:
                [entry] = parse_entry_list(FileEntry, note.get("files"))
            except (ManifestError, ValueError):
                return
            same = (note.get("scheme"), note.get("sources")) == (_SCHEME, self._sources)
            if not same or not fits(self._text.commit.directory, entry):
                return
            self.made.append(entry)
            self._next = NextDocument(*note["next"])
            for file, counts in note["counts"].items():
                self.counts[int(file)].add(SegmentCounts(**counts))

    def write(self, pool: ProcessPool, step: RecordStep) -> None:
        """Write the rest of the parts. InputError where no record has text, and for a bad record."""
        skips = step.settings.records.skip_bad_records
        results = pool.in_order(step, self._pieces(step))
        with ExitStack() as stack:
            writer = _PartWriter(self, stack)
            for work, found in results:
                if work.file > self._next.file:
                    self._next = NextDocument(file=work.file)
                if found.first_bad is not None and not skips:
                    raise bad_record_error(work.path, self._next.numbers, found.first_bad)
                writer.add(found, work)
                self._count(work.file, found)
                numbers = self._next.numbers + found.numbers
                self._next = NextDocument(work.file, work.number + 1, 0, numbers)
                self._progress(work.file, work.piece.bytes)
            writer.finish()
        if not self.made:
            raise no_text_error(self._text.plan.files)

    def _pieces(self, step: RecordStep) -> Iterator[NumberedPiece]:
        first, plan = self._next, self._text.plan
        for file in range(first.file, len(plan.files)):
            path = plan.files[file]
            pieces = SOURCE_KINDS[plan.kinds[file]].pieces(path, step.settings.records)
            for index, piece in enumerate(pieces):
                if file > first.file or index >= first.piece:
                    yield NumberedPiece(file, index, path, piece)

    def _count(self, file: int, found: PieceText) -> None:
        counts = SegmentCounts(articles=len(found.ends), sentences=found.sentences)
        counts.add(SegmentCounts(**{reason: found.bad.get(reason, 0) for reason in REASONS}))
        self.counts[file].add(counts)
        self._new_counts.setdefault(file, SegmentCounts()).add(counts)

    def start_of(self, work: NumberedPiece) -> int:
        """The number of the piece's first document that is in no part yet."""
        here = (work.file, work.number) == (self._next.file, self._next.piece)
        return self._next.document if here else 0

    def note(self, entry: FileEntry, work: NumberedPiece | None, document: int) -> None:
        """Note a part that ends before this document of the piece."""
        if work is not None:
            self._next = self._next._replace(file=work.file, piece=work.number, document=document)
        self.made.append(entry)
        counts = {str(file): _told(counts) for file, counts in self._new_counts.items()}
        self._text.commit.note(
            entry.name,
            {
                "files": [entry._asdict()],
                "scheme": _SCHEME,
                "sources": self._sources,
                "next": list(self._next),
                "counts": counts,
            },
        )
        self._new_counts.clear()

    def open(self, stack: ExitStack) -> HashingSink:
        """The next part, opened for writing. It appears when the stack is closed."""
        return stack.enter_context(self._text.open(part_name(len(self.made))))

    @property
    def part_bytes(self) -> float:
        return self._text.plan.settings.part_bytes


class _PartWriter:
    """Writes documents into the part that is open, and opens the next one where it is full."""

    def __init__(self, parts: RecordParts, stack: ExitStack) -> None:
        self._parts = parts
        self._cuts = PartCuts(parts.part_bytes, len(parts.made))
        self._outer = stack
        self._stack = stack.enter_context(ExitStack())
        self._sink: HashingSink | None = None

    def add(self, found: PieceText, work: NumberedPiece) -> None:
        """Write the documents of a piece that are in no part yet."""
        first = self._parts.start_of(work)
        ends = [found.ends[first - 1] if first else 0, *found.ends[first:]]
        for run in self._cuts.runs(found.sizes[first:]):
            if run.part > len(self._parts.made):
                self.finish(work, first + run.start)
            self._write(found.text[ends[run.start] : ends[run.stop]])

    def _write(self, data: bytes) -> None:
        if self._sink is None:
            self._sink = self._parts.open(self._stack)
        self._sink.write(data)

    def finish(self, work: NumberedPiece | None = None, document: int = 0) -> None:
        """End the part that is open. work, document: the one that begins the next part."""
        if self._sink is None:
            return
        self._stack.close()
        self._parts.note(self._sink.entry(part_name(len(self._parts.made))), work, document)
        self._stack = self._outer.enter_context(ExitStack())
        self._sink = None


def _told(counts: SegmentCounts) -> dict[str, Any]:
    return {name: value for name in ("articles", "sentences", *REASONS) if (value := getattr(counts, name))}
