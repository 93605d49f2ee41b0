"""Stages that find records whose text equals the text of an earlier record, and mark them as duplicates.

Workers read the files in pieces, which are sections of a file. The hashes of all texts are divided into
groups by their first byte, and each group is sorted by one worker. If several records have equal hashes, the
first of them is kept, in the order of files, pieces and records. The others are duplicates.
"""

import pickle
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import apache_beam as beam

from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.record_stage import RecordStage
from beam_pipelines.transport.spill_files import StageBytes, read_value
from bertdata.text.numbered_piece import Duplicate, NumberedPiece
from bertdata.text.record_text import make_bad_record_error
from bertdata.text.selection.duplicates import PieceHashes, PieceToHashes, match_duplicates, split_entries

PieceKey = tuple[int, int]
"""Key of a piece (a section of a file): the file's number, and the number of the piece in the file.

Pieces that are sorted by their keys are in the order of the files.
"""

_GROUP_BYTES = 1
"""Number of bytes at the start of a hash that select its group.

One byte makes 256 groups. Each is small enough to be sorted in a worker's memory.
"""


class MarkDuplicates(beam.PTransform):  # type: ignore[misc]
    """Add to each piece (a section of a file) the list of its records that are duplicates.

    For piece number 7 of file number 0::

        ((0, 7), piece) -> ((0, 7), piece with duplicates)
    """

    def __init__(self, stage: RecordStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, pieces: beam.PCollection[tuple[PieceKey, StageBytes]]
    ) -> beam.PCollection[tuple[PieceKey, StageBytes]]:
        """Connect the stages that hash the texts, find duplicates and store them in the pieces."""
        hashed = pieces | "hash texts" >> beam.ParDo(HashPiece(self._stage)).with_outputs(
            "facts", main="entries"
        )
        numbers = (
            hashed.facts
            | "gather numbers of records" >> beam.GroupByKey()
            | "number records" >> beam.ParDo(NumberRecords(self._stage))
        )
        duplicates = (
            hashed.entries
            | "gather hashes" >> beam.GroupByKey()
            | "find duplicates" >> beam.ParDo(FindDuplicates(), beam.pvalue.AsDict(numbers))
        )
        return (
            {"pieces": pieces, "duplicates": duplicates}
            | "gather pieces" >> beam.CoGroupByKey()
            | "put duplicates into pieces" >> beam.ParDo(StoreDuplicates(self._stage))
        )


class HashPiece(beam.DoFn):  # type: ignore[misc]
    """Hash the texts of the records of a piece (a section of a file).

    For each group of hashes, the main output has (first byte of the hashes, hashes with their places). Output
    "facts" has (0, (key of the piece, PieceHashes)) with the piece's counts of records, but without the
    hashes.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._step = PieceToHashes(stage.plan.settings)

    def process(self, piece: tuple[PieceKey, StageBytes]) -> Iterator[Any]:
        """Hash the texts of one piece."""
        key, packed = piece
        work: NumberedPiece = pickle.loads(read_value(packed))
        with add_path_to_errors(work.path):
            found = self._step(work)
        groups: dict[bytes, list[bytes]] = {}
        for entry in split_entries(found.entries):
            groups.setdefault(entry[:_GROUP_BYTES], []).append(entry)
        for group, entries in groups.items():
            yield group, b"".join(entries)
        yield beam.pvalue.TaggedOutput("facts", (0, (key, found._replace(entries=b""))))


class NumberRecords(beam.DoFn):  # type: ignore[misc]
    """Count how many records of a file come before each of its pieces. The outputs are (piece key, number).

    Raises InputError for the first bad record, unless the settings skip bad records.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._plan = stage.plan

    def process(
        self, gathered: tuple[int, Iterable[tuple[PieceKey, PieceHashes]]]
    ) -> Iterator[tuple[PieceKey, int]]:
        """Count the records before each piece.

        gathered: the key 0, and for each piece its key and its counts.
        """
        taken = [0 for _ in self._plan.files]
        for key, found in sorted(gathered[1], key=itemgetter(0)):
            file = key[0]
            if found.first_bad is not None and not self._plan.settings.records.skip_bad_records:
                raise make_bad_record_error(self._plan.files[file], taken[file], found.first_bad)
            yield key, taken[file]
            taken[file] += found.taken


class FindDuplicates(beam.DoFn):  # type: ignore[misc]
    """Find the duplicates in one group of hashes by sorting it.

    For each duplicate record, the output is (key of its piece, Duplicate).
    """

    def process(
        self, gathered: tuple[bytes, Iterable[bytes]], before: dict[PieceKey, int]
    ) -> Iterator[tuple[PieceKey, Duplicate]]:
        """Find the duplicates in one group.

        gathered: the first byte of the hashes, and blocks of hashes with their places.
        before: number of records before each piece in its file.
        """
        entries = sorted(entry for block in gathered[1] for entry in split_entries(block))
        for file, piece, duplicate in match_duplicates(entries, lambda file, piece: before[file, piece]):
            yield (file, piece), duplicate


class StoreDuplicates(beam.DoFn):  # type: ignore[misc]
    """Store in each piece the list of its duplicate records. The outputs are (piece key, piece)."""

    def __init__(self, stage: RecordStage) -> None:
        self._spill_files = stage.spill_files

    def process(
        self, gathered: tuple[PieceKey, dict[str, Iterable[Any]]]
    ) -> Iterator[tuple[PieceKey, StageBytes]]:
        """Store the duplicates in one piece.

        gathered: the piece's key, and the piece and its duplicates by name.
        """
        key, found = gathered
        (packed,) = found["pieces"]
        duplicates = sorted(found["duplicates"])
        if duplicates:
            work: NumberedPiece = pickle.loads(read_value(packed))
            (packed,) = self._spill_files.write([pickle.dumps(work._replace(duplicates=duplicates))])
        yield key, packed
