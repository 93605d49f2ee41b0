"""Stages that make text parts and their manifest from records.

All workers read pieces (sections) of the files and split the documents in them into sentences. The sizes of
all documents go to one worker. It decides where each part begins, in the order of files and pieces, so that
the parts are the same as those of ``bertdata segment``. If all workers share a disk, the text itself is
stored in temporary files between the stages. If duplicates are removed, they are found first, from hashes of
all texts (``duplicates.py``).
"""

import logging
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, count_text
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.duplicates import MarkDuplicates, PieceKey
from beam_pipelines.stages.record_stage import RecordStage
from beam_pipelines.stages.shards import ONE_AT_A_TIME
from beam_pipelines.stages.text_manifest import report_counts
from beam_pipelines.transport.spill_files import StageBytes, cut_value, read_value
from bertdata.config.held_out_names import REMOVED, make_record_eval_name, make_record_part_name
from bertdata.errors import InputError
from bertdata.io.file_check import FileEntry
from bertdata.io.file_identity import check_all_unchanged
from bertdata.sources.kinds import ESCAPED_ARTICLES, SOURCE_KINDS
from bertdata.text.directory import read_input_md5s
from bertdata.text.languages import list_unsplit_notes
from bertdata.text.manifest import make_text_input
from bertdata.text.numbered_piece import NumberedPiece
from bertdata.text.record_cuts import PartAssignment
from bertdata.text.record_documents import DocumentTexts, PieceText, PieceToDocuments
from bertdata.text.record_parts import make_no_text_error
from bertdata.text.record_text import make_bad_record_error
from bertdata.text.selection.evaluation_texts import load_ngrams
from bertdata.text.selection.removed import format_removed_records
from bertdata.text.settings import SegmentCounts

_LOGGER = logging.getLogger(__name__)

TextRange = tuple[str, int, int]
"""Name of a part, and the range of a piece's text that belongs to the part: first byte, byte after the last.
"""

NumberedSource = tuple[int, str, str]
"""An input file: its number, its path and its kind, such as "jsonl"."""


class SourceDigest(NamedTuple):
    """Number, size in bytes, and md5 of an input file."""

    file: int
    bytes: int
    md5: str


class PieceCut(NamedTuple):
    """The decision which parts the text of a piece (a section of a file) goes to.

    before: number of records that the file has before this piece.
    ranges: the parts, each with its range of the piece's text.
    """

    before: int
    ranges: list[TextRange]


class SourceCounts(NamedTuple):
    """The number of an input file, and the counts of its records.

    unsplit: number of documents of each language without a sentence splitter, by ISO 639-1 code.
    """

    file: int
    counts: SegmentCounts
    unsplit: Mapping[str, int]


_SPILLED_BYTES = 1 << 14
"""Size in bytes from which a pickled piece is stored in a temporary file on its way to the next stage.

A piece that does not contain data, but only the place of the data in a file, is smaller.
"""


class MakeRecordParts(beam.PTransform):  # type: ignore[misc]
    """Write the text parts of all records, and their manifest. The output is the path of their directory.

    For file number 0, its piece number 7, and the part that this piece's text goes to::

        (0, "corpus/a.jsonl", "jsonl") -> ((0, 7), text of the piece) -> "part-00000.txt"
    """

    def __init__(self, stage: RecordStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        """Connect the stages from the files of records to the parts' manifest."""
        stage, plan = self._stage, self._stage.plan
        numbered = list(zip(range(len(plan.files)), plan.files, plan.kinds, strict=True))
        files = (
            begin
            | "list files" >> beam.Create(numbered, reshuffle=False)
            | "spread files over workers" >> beam.Reshuffle()
        )
        digests = files | "hash files" >> beam.ParDo(HashSource(stage))
        pieces = (
            files
            | "list pieces" >> beam.ParDo(ListPieces(stage))
            | "spread pieces over workers" >> beam.Reshuffle()
        )
        if plan.settings.selection.dedup is not None:
            pieces = pieces | "mark duplicates" >> MarkDuplicates(stage)
        texts = pieces | "read records and split sentences" >> beam.ParDo(SplitPiece(stage)).with_outputs(
            "facts", main="texts"
        )
        cuts = (
            texts.facts
            | "gather sizes" >> beam.GroupByKey()
            | "cut parts" >> beam.ParDo(CutParts(stage)).with_outputs("counts", main="ranges")
        )
        # The ranges are a side input. So texts are cut only after one worker has seen the sizes of all
        # documents.
        ranges = beam.pvalue.AsDict(cuts.ranges)
        parts = (
            texts.texts
            | "cut texts" >> beam.ParDo(CutText(stage), ranges)
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
    """Compute the md5 of an input file. The output is (0, SourceDigest)."""

    def __init__(self, stage: RecordStage) -> None:
        self._identities = stage.plan.identities

    def process(self, file: NumberedSource) -> Iterator[tuple[int, SourceDigest]]:
        """Hash one file."""
        number, path, kind = file
        with add_path_to_errors(path):
            hashed = self._identities[number].with_md5()
        unescaped = int(kind == ESCAPED_ARTICLES)
        add_to_counters(count_text(SegmentCounts(files=1, unescaped=unescaped, bytes_in=hashed.state.bytes)))
        yield 0, SourceDigest(number, hashed.state.bytes, hashed.md5)


class ListPieces(beam.DoFn):  # type: ignore[misc]
    """Divide a file into pieces. Each output is the key of a piece and the pickled piece.

    A piece usually contains only its place in the file. But for a file that must be read from its beginning,
    such as a compressed file, it contains the data itself. Such large pieces are stored in temporary files.
    For file number 0::

        (0, "a.jsonl", "jsonl") -> ((0, 0), piece), ((0, 1), piece), ...
    """

    def __init__(self, stage: RecordStage) -> None:
        self._stage = stage

    def process(self, file: NumberedSource) -> Iterator[tuple[PieceKey, StageBytes]]:
        """Divide one file."""
        number, path, kind = file
        settings = self._stage.plan.settings.records
        # The lock is needed because the CSV reader changes a limit of the whole process.
        with add_path_to_errors(path), ONE_AT_A_TIME:
            pieces = [
                ((number, index), self._pack(NumberedPiece(number, index, path, piece)))
                for index, piece in enumerate(SOURCE_KINDS[kind].pieces(path, settings))
            ]
        yield from pieces

    def _pack(self, work: NumberedPiece) -> StageBytes:
        """Pickle a piece. A large piece is written to a temporary file, whose place is returned."""
        data = pickle.dumps(work)
        return data if len(data) < _SPILLED_BYTES else self._stage.spill_files.write([data])[0]


class SplitPiece(beam.DoFn):  # type: ignore[misc]
    """Read the records of a piece and split their text into sentences.

    The main output is (key of the piece, (text, removed records)). The text for training comes first in it,
    then the text that is held out for evaluation. Output "facts" has (0, (key of the piece, PieceText)), with
    sizes and counts, but without the text.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._stage = stage
        self._step = PieceToDocuments(stage.plan.settings, stage.load_splitter, stage.load_splitter.engine)

    def setup(self) -> None:
        """Load the splitter of sentences once in each worker, if it is needed."""
        settings = self._stage.plan.settings
        if settings.sentences == "punkt" and settings.records.language_field is None:
            self._stage.load_splitter()

    def process(self, piece: tuple[PieceKey, StageBytes]) -> Iterator[Any]:
        """Split the records of one piece."""
        key, packed = piece
        work: NumberedPiece = pickle.loads(read_value(packed))
        with add_path_to_errors(work.path):
            found = self._step(work)
            self._stage.plan.identities[work.file].check()
        add_to_counters(count_text(found.counts))
        text = found.training.text + found.withheld.text
        yield key, tuple(self._stage.spill_files.write([text, pickle.dumps(found.removed)]))
        training, withheld = found.training._replace(text=b""), found.withheld._replace(text=b"")
        facts = found._replace(training=training, withheld=withheld, removed=[])
        yield beam.pvalue.TaggedOutput("facts", (0, (key, facts)))


class CutParts(beam.DoFn):  # type: ignore[misc]
    """Decide from the sizes of all documents where each part begins.

    For each piece, the main output is (key of the piece, PieceCut). For each file, output "counts" has (0,
    SourceCounts).

    Raises InputError for the first bad record, unless the settings skip bad records. Raises InputError also
    if no record has text.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._plan = stage.plan

    def process(self, gathered: tuple[int, Iterable[tuple[PieceKey, PieceText]]]) -> Iterator[Any]:
        """Decide where the parts begin.

        gathered: the key 0, and for each piece its key and the sizes of its documents.
        """
        settings = self._plan.settings
        training, withheld = PartAssignment(settings.part_bytes), PartAssignment(settings.part_bytes)
        counts = [SegmentCounts(files=1) for _ in self._plan.files]
        unsplit: list[Counter[str]] = [Counter() for _ in self._plan.files]
        numbers = [0 for _ in self._plan.files]
        first_error: InputError | None = None
        skips = settings.records.skip_bad_records
        for key, found in sorted(gathered[1], key=itemgetter(0)):
            file, before = key[0], numbers[key[0]]
            if found.first_bad is not None and first_error is None:
                first_error = make_bad_record_error(
                    self._plan.files[file], before, found.first_bad, skips=skips
                )
            if first_error is not None and not skips:
                raise first_error
            numbers[file] += found.numbers
            counts[file].add(found.counts)
            unsplit[file].update(found.unsplit)
            # The text of a piece is its training text followed by its held-out text, which begins at byte
            # ``size``.
            ranges = list(_list_ranges(found.training, training, make_record_part_name, 0))
            size = found.training.ends[-1] if found.training.ends else 0
            yield (
                key,
                PieceCut(
                    before, ranges + list(_list_ranges(found.withheld, withheld, make_record_eval_name, size))
                ),
            )
        if sum(one.articles - one.withheld for one in counts) == 0:
            raise make_no_text_error(self._plan.files, counts, first_error)
        for number, one in enumerate(counts):
            yield beam.pvalue.TaggedOutput("counts", (0, SourceCounts(number, one, unsplit[number])))


def _list_ranges(
    texts: DocumentTexts, cuts: PartAssignment, name: Callable[[int], str], first: int
) -> Iterator[TextRange]:
    """Yield the parts that a piece's documents go to, each with its range of the piece's text.

    texts: sizes and ends of the documents.
    cuts: the decisions so far where parts begin.
    name: function that returns a part's file name from its number.
    first: byte of the piece's text at which these documents begin.
    """
    ends = [0, *texts.ends]
    for run in cuts.assign_documents(texts.sizes):
        yield name(run.part), first + ends[run.start], first + ends[run.stop]


class CutText(beam.DoFn):  # type: ignore[misc]
    """Cut the text of a piece where a new part begins. The outputs are (part name, (piece key, text)).

    The records that were removed from the piece are output too, as lines for the file that lists them.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._names = stage.plan.inputs

    def process(
        self, piece: tuple[PieceKey, tuple[StageBytes, StageBytes]], cuts: dict[PieceKey, PieceCut]
    ) -> Iterator[tuple[str, tuple[PieceKey, StageBytes]]]:
        """Cut the text of one piece.

        cuts: the parts that each piece's text goes to.
        """
        key, (text, packed) = piece
        before, ranges = cuts[key]
        for part, start, stop in ranges:
            yield part, (key, cut_value(text, start, stop))
        if removed := pickle.loads(read_value(packed)):
            yield REMOVED, (key, format_removed_records(removed, key[0], before, self._names))


class WriteRecordPart(beam.DoFn):  # type: ignore[misc]
    """Write a text part from the texts of its pieces, in their order.

    The output is its entry for the manifest.

    The file that lists the removed records is written in the same way. Each file's name is noted in the
    directory, so that a later run that makes fewer parts can delete the file.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._text = stage.text

    def process(
        self, gathered: tuple[str, Iterable[tuple[PieceKey, StageBytes]]]
    ) -> Iterator[tuple[int, FileEntry]]:
        """Write one part or the list of removed records.

        gathered: the file's name, and the keys of pieces with their text for this file.
        """
        name = gathered[0]
        with add_path_to_errors(self._text.commit.path(name)), self._text.open(name) as file:
            for _, text in sorted(gathered[1], key=itemgetter(0)):
                file.write(read_value(text))
        entry = file.entry(name)
        self._text.commit.note(name, {"files": [entry._asdict()]})
        add_to_counters(count_text(SegmentCounts(bytes_out=entry.bytes)))
        yield 0, entry


class FinishRecords(beam.DoFn):  # type: ignore[misc]
    """Write the manifest of the directory of text parts.

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._text, self._engine = stage.text, stage.load_splitter.engine

    def _count_unprotected(self) -> int | None:
        """Return the number of evaluation texts that are too short to be searched for in the training text.

        Returns None if no evaluation texts were given.
        """
        selection = self._text.plan.settings.selection
        if not selection.exclude:
            return None
        return load_ngrams(selection.exclude, selection.exclude_ngram, self._engine).short_texts

    def process(
        self, gathered: tuple[int, Iterable[FileEntry | SourceDigest | SourceCounts]]
    ) -> Iterator[str]:
        """Write the manifest.

        gathered: the key 0, the entries of all written files, and the digests and counts of all input files.
        """
        entries, plan = list(gathered[1]), self._text.plan
        counted = [one for one in entries if isinstance(one, SourceCounts)]
        counts = {one.file: one.counts for one in counted}
        unsplit: Counter[str] = Counter()
        for one in counted:
            unsplit.update(one.unsplit)
        inputs = [
            make_text_input(
                plan.inputs[one.file],
                one.md5,
                replace(counts[one.file], bytes_in=one.bytes),
                plan.kinds[one.file],
            )
            for one in sorted(one for one in entries if isinstance(one, SourceDigest))
        ]
        parts = [one for one in entries if isinstance(one, FileEntry)]
        check_all_unchanged(
            identity._replace(md5=one.md5) for identity, one in zip(plan.identities, inputs, strict=True)
        )
        before = read_input_md5s(self._text.commit.directory)
        manifest = self._text.finish(inputs, parts, release=False, unprotected=self._count_unprotected())
        report_counts(self._text.commit.directory, manifest, before)
        for note in list_unsplit_notes(unsplit):
            _LOGGER.warning("%s", note)
        yield self._text.commit.directory
