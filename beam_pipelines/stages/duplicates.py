"""Stages that find records with the same text as an earlier record, and mark them as duplicates.

The texts' hashes are divided into groups by their first byte, and a worker sorts each group. Of records with
equal hashes, the first by file, piece (a section of a file) and record is kept. The others are duplicates.
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
"""(file number, piece number in that file). Sorting by it gives the order of all pieces."""

_GROUP_BYTES = 1
"""Number of leading hash bytes that select the group: 256 groups, each sorted in a worker's memory."""


class MarkDuplicates(beam.PTransform):  # type: ignore[misc]
    """Add to each piece (a section of a file) the list of the duplicates among its records.

    ::

        ((0, 7), piece) -> ((0, 7), piece with duplicates)
    """

    def __init__(self, stage: RecordStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(
        self, pieces: beam.PCollection[tuple[PieceKey, StageBytes]]
    ) -> beam.PCollection[tuple[PieceKey, StageBytes]]:
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
            | "put duplicates into pieces" >> beam.ParDo(PutDuplicates(self._stage))
        )


class HashPiece(beam.DoFn):  # type: ignore[misc]
    """Hash the texts of a piece. Returns (group, entries) for each group of hashes.

    Tagged "facts": (0, (key, PieceHashes(...))): the piece's counts of records, without the hashes.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._step = PieceToHashes(stage.plan.settings)

    def process(self, piece: tuple[PieceKey, StageBytes]) -> Iterator[Any]:
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
    """Count the records of each file before each of its pieces. Returns (piece key, number) pairs.

    InputError for the first bad record, unless the settings skip bad records.
    """

    def __init__(self, stage: RecordStage) -> None:
        self._plan = stage.plan

    def process(
        self, gathered: tuple[int, Iterable[tuple[PieceKey, PieceHashes]]]
    ) -> Iterator[tuple[PieceKey, int]]:
        taken = [0 for _ in self._plan.files]
        for key, found in sorted(gathered[1], key=itemgetter(0)):
            file = key[0]
            if found.first_bad is not None and not self._plan.settings.records.skip_bad_records:
                raise make_bad_record_error(self._plan.files[file], taken[file], found.first_bad)
            yield key, taken[file]
            taken[file] += found.taken


class FindDuplicates(beam.DoFn):  # type: ignore[misc]
    """Sort the hashes of a group. Returns (piece key, Duplicate(...)) for each duplicate record."""

    def process(
        self, gathered: tuple[bytes, Iterable[bytes]], before: dict[PieceKey, int]
    ) -> Iterator[tuple[PieceKey, Duplicate]]:
        entries = sorted(entry for block in gathered[1] for entry in split_entries(block))
        for file, piece, duplicate in match_duplicates(entries, lambda file, piece: before[file, piece]):
            yield (file, piece), duplicate


class PutDuplicates(beam.DoFn):  # type: ignore[misc]
    """Store the list of duplicate records in their piece. Returns (piece key, piece) pairs."""

    def __init__(self, stage: RecordStage) -> None:
        self._spill_files = stage.spill_files

    def process(
        self, gathered: tuple[PieceKey, dict[str, Iterable[Any]]]
    ) -> Iterator[tuple[PieceKey, StageBytes]]:
        key, found = gathered
        (packed,) = found["pieces"]
        duplicates = sorted(found["duplicates"])
        if duplicates:
            work: NumberedPiece = pickle.loads(read_value(packed))
            (packed,) = self._spill_files.write([pickle.dumps(work._replace(duplicates=duplicates))])
        yield key, packed
