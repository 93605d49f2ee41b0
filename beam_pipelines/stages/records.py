"""Records to parts and their manifest: pieces of files, documents, cuts between parts, parts.

Pieces are read and split into sentences on all workers. Their documents' sizes go to one worker, which cuts
parts by them: in the order of files and pieces, as ``bertdata segment`` does. The text itself waits in spill
files where workers share a disk.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam

from beam_pipelines.report.counters import count, text_amounts
from beam_pipelines.report.errors import naming
from beam_pipelines.stages.record_stage import RecordStage
from beam_pipelines.stages.shards import ONE_AT_A_TIME
from beam_pipelines.transport.spill_files import StageBytes, cut, read
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, file_md5
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.sources.records import REASONS
from bertdata.text.manifest import text_input
from bertdata.text.record_cuts import PartCuts
from bertdata.text.record_documents import NumberedPiece, PieceText, RecordStep
from bertdata.text.record_parts import bad_record_error, no_text_error, part_name
from bertdata.text.settings import SegmentCounts

PieceKey = tuple[int, int]
"""Numbers of a file and of a piece in it: they give the order of all pieces."""

TextRange = tuple[int, int, int]
"""The number of a part, and the bytes of a piece's text that stand in it: start up to stop."""

NumberedSource = tuple[int, str, str]
"""The number, path and kind of a file."""


class SourceDigest(NamedTuple):
    """Number, size and md5 of a file."""

    file: int
    bytes: int
    md5: str


class SourceCounts(NamedTuple):
    """The number of a file, and counts of its records."""

    file: int
    counts: SegmentCounts


_SPILLED_BYTES = 1 << 14
"""Bytes from which on a piece waits in a file. A piece that is a range of a file is smaller."""


class MakeRecordParts(beam.PTransform):  # type: ignore[misc]
    """Write the parts of all records and their manifest. Returns the directory.

    ::

        (0, "corpus/a.jsonl", "jsonl") -> ((0, 7), text of a piece) -> "part-00000.txt"
    """

    def __init__(self, stage: RecordStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        stage, plan = self._stage, self._stage.plan
        numbered = list(zip(range(len(plan.files)), plan.files, plan.kinds, strict=True))
        files = (
            begin
            | "list files" >> beam.Create(numbered, reshuffle=False)
            | "spread files over workers" >> beam.Reshuffle()
        )
        digests = files | "hash files" >> beam.ParDo(HashSource())
        texts = (
            files
            | "list pieces" >> beam.ParDo(ListPieces(stage))
            | "spread pieces over workers" >> beam.Reshuffle()
            | "read records and split sentences"
            >> beam.ParDo(SplitPiece(stage)).with_outputs("facts", main="texts")
        )
        cuts = (
            texts.facts
            | "gather sizes" >> beam.GroupByKey()
            | "cut parts" >> beam.ParDo(CutParts(stage)).with_outputs("counts", main="ranges")
        )
        ranges = beam.pvalue.AsDict(cuts.ranges)
        parts = (
            texts.texts
            | "cut texts" >> beam.ParDo(CutText(), ranges)
            | "gather parts" >> beam.GroupByKey()
            | "write part" >> beam.ParDo(WriteRecordPart(stage))
        )
        return (
            (digests, cuts.counts, parts)
            | "all entries" >> beam.Flatten()
            | "gather entries" >> beam.GroupByKey()
            | "write manifest of the parts" >> beam.ParDo(FinishRecords(stage)).with_output_types(str)
        )


class HashSource(beam.DoFn):  # type: ignore[misc]
    """Hash a file: (0, SourceDigest(...))."""

    def process(self, file: NumberedSource) -> Iterator[tuple[int, SourceDigest]]:
        number, path, _ = file
        with naming(path):
            size, md5 = storage.size(path), file_md5(path)
        count(text_amounts(SegmentCounts(files=1, bytes_in=size)))
        yield 0, SourceDigest(number, size, md5)


class ListPieces(beam.DoFn):  # type: ignore[misc]
    """List a file's pieces, pickled. One that holds data of a file read from its begin is spilled.

    ::

        (0, "a.jsonl", "jsonl") -> ((0, 0), piece), ((0, 1), piece), ...
    """

    def __init__(self, stage: RecordStage) -> None:
        self._stage = stage

    def process(self, file: NumberedSource) -> Iterator[tuple[PieceKey, StageBytes]]:
        number, path, kind = file
        settings = self._stage.plan.settings.records
        with naming(path), ONE_AT_A_TIME:  # the longest field of CSV is a limit of the whole process
            pieces = [
                ((number, index), self._packed(NumberedPiece(number, index, path, piece)))
                for index, piece in enumerate(SOURCE_KINDS[kind].pieces(path, settings))
            ]
        yield from pieces

    def _packed(self, work: NumberedPiece) -> StageBytes:
        data = pickle.dumps(work)
        return data if len(data) < _SPILLED_BYTES else self._stage.spill_files.write([data])[0]


class SplitPiece(beam.DoFn):  # type: ignore[misc]
    """Read a piece's records and split their sentences: ((0, 7), text).

    Tagged "facts": (0, (key, PieceText(...))), which holds no text.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._stage = stage
        self._step = RecordStep(stage.plan.settings, stage.load_splitter)

    def setup(self) -> None:
        if self._stage.plan.settings.sentences == "punkt":
            self._stage.load_splitter()

    def process(self, piece: tuple[PieceKey, StageBytes]) -> Iterator[Any]:
        key, packed = piece
        work: NumberedPiece = pickle.loads(read(packed))
        with naming(work.path):
            found = self._step(work)
        count(text_amounts(_counts(found)))
        (text,) = self._stage.spill_files.write([found.text])
        yield key, text
        yield beam.pvalue.TaggedOutput("facts", (0, (key, found._replace(text=b""))))


class CutParts(beam.DoFn):  # type: ignore[misc]
    """Cut parts from the sizes of all documents: (key, [(part, start, stop), ...]) for each piece.

    Tagged "counts": (0, SourceCounts(...)). InputError for the first bad record, unless the
    settings leave it out, and where no record has text.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._plan = stage.plan

    def process(self, gathered: tuple[int, Iterable[tuple[PieceKey, PieceText]]]) -> Iterator[Any]:
        settings = self._plan.settings
        cuts = PartCuts(settings.part_bytes)
        counts = [SegmentCounts(files=1) for _ in self._plan.files]
        numbers = [0 for _ in self._plan.files]
        for key, found in sorted(gathered[1], key=itemgetter(0)):
            file = key[0]
            if found.first_bad is not None and not settings.records.skip_bad_records:
                raise bad_record_error(self._plan.files[file], numbers[file], found.first_bad)
            numbers[file] += found.numbers
            counts[file].add(_counts(found))
            ends = [0, *found.ends]
            yield key, [(run.part, ends[run.start], ends[run.stop]) for run in cuts.runs(found.sizes)]
        if not any(one.articles for one in counts):
            raise no_text_error(self._plan.files)
        for number, one in enumerate(counts):
            yield beam.pvalue.TaggedOutput("counts", (0, SourceCounts(number, one)))


class CutText(beam.DoFn):  # type: ignore[misc]
    """Cut a piece's text at the ends of parts: (number of a part, (key, text))."""

    def process(
        self, piece: tuple[PieceKey, StageBytes], ranges: dict[PieceKey, list[TextRange]]
    ) -> Iterator[tuple[int, tuple[PieceKey, StageBytes]]]:
        key, text = piece
        for part, start, stop in ranges[key]:
            yield part, (key, cut(text, start, stop))


class WriteRecordPart(beam.DoFn):  # type: ignore[misc]
    """Write a part from the texts of its pieces, in their order. Returns its entry.

    It is noted, so that a later run of fewer parts removes it.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._text = stage.text

    def process(
        self, gathered: tuple[int, Iterable[tuple[PieceKey, StageBytes]]]
    ) -> Iterator[tuple[int, FileEntry]]:
        name = part_name(gathered[0])
        with naming(self._text.commit.path(name)), self._text.open(name) as file:
            for _, text in sorted(gathered[1], key=itemgetter(0)):
                file.write(read(text))
        entry = file.entry(name)
        self._text.commit.note(name, {"files": [entry._asdict()]})
        count(text_amounts(SegmentCounts(bytes_out=entry.bytes)))
        yield 0, entry


class FinishRecords(beam.DoFn):  # type: ignore[misc]
    """Calls ``TextDirectory.finish``. Harmless when repeated: it writes the same bytes."""

    def __init__(self, stage: RecordStage) -> None:
        self._text = stage.text

    def process(
        self, gathered: tuple[int, Iterable[FileEntry | SourceDigest | SourceCounts]]
    ) -> Iterator[str]:
        entries, plan = list(gathered[1]), self._text.plan
        counts = {one.file: one.counts for one in entries if isinstance(one, SourceCounts)}
        inputs = [
            text_input(
                plan.inputs[one.file],
                one.md5,
                replace(counts[one.file], bytes_in=one.bytes),
                plan.kinds[one.file],
            )
            for one in sorted(one for one in entries if isinstance(one, SourceDigest))
        ]
        parts = [one for one in entries if isinstance(one, FileEntry)]
        self._text.finish(inputs, parts, release=False)
        yield self._text.commit.directory


def _counts(found: PieceText) -> SegmentCounts:
    bad = {reason: found.bad.get(reason, 0) for reason in REASONS}
    return SegmentCounts(articles=len(found.ends), sentences=found.sentences, **bad)
