"""Find records whose text an earlier record also has, by sorting the hashes of all texts on disk.

A first pass computes a hash of every text. The hashes are sorted together with the positions of their
records. All records except the first with the same hash are duplicates. The duplicates are sorted by position
into a file. The pass that makes the parts reads this file side by side with the records. Memory does not grow
with the number of records.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.entry_json import parse_entry_list
from bertdata.io.file_check import FileEntry, HashingSink, matches_entry
from bertdata.io.file_identity import FileIdentity, check_all_unchanged
from bertdata.io.process_pool import ProcessPool
from bertdata.io.sorted_entries import SortedEntries
from bertdata.sources.records import BadRecord
from bertdata.text.directory import TextDirectory
from bertdata.text.numbered_piece import Duplicate, NumberedPiece, RecordPlace
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan, plan_pieces
from bertdata.text.record_text import (
    HASH_BYTES,
    find_first_fault,
    hash_text,
    make_bad_record_error,
    normalise_texts,
)

SCRATCH_NAME = "sorted/duplicates"
"""Name of the scratch file with the duplicates. It contains a slash, so it never equals the name of a part.
"""

HASH_ENTRY = struct.Struct(f">{HASH_BYTES}sIII")
"""Entry of a record in the sort that finds equal texts.

It consists of the hash of the text, the number of the file, the number of the piece (a group of records) in
the file, and the number of the record in the piece.
"""
_DUPLICATE_ENTRY = struct.Struct(">IIIIQ")
"""Entry of a duplicate in the sort that brings the duplicates into the order of the files.

It consists of the numbers of the duplicate's file, piece and record in the piece, followed by the numbers of
the file and of the record in it that has the same text first.
"""


class PieceHashes(NamedTuple):
    """Hash entries of a piece's records.

    entries: the entries (see HASH_ENTRY), one after another.
    taken: number of records in the piece. For JSON lines it is the number of lines, also of blank lines.
    first_bad: first record of the piece that ends a run unless bad records are skipped, or None.
    """

    entries: bytes
    taken: int
    first_bad: BadRecord | None


@dataclass(frozen=True, slots=True)
class PieceToHashes:
    """Function object that turns a piece into the hashes of its texts. Workers call it."""

    settings: PartSettings

    def __call__(self, work: NumberedPiece) -> PieceHashes:
        read = work.piece.read(self.settings.records)
        usable, bad = normalise_texts(read.records, self.settings)
        entries = [
            HASH_ENTRY.pack(hash_text(body), work.file, work.number, record.number) for record, body in usable
        ]
        return PieceHashes(b"".join(entries), read.numbers, find_first_fault(bad))


def split_entries(entries: bytes) -> Iterator[bytes]:
    """Split concatenated hash entries (see HASH_ENTRY) into single entries."""
    for start in range(0, len(entries), HASH_ENTRY.size):
        yield entries[start : start + HASH_ENTRY.size]


def match_duplicates(
    hashed: Iterable[bytes], before: Callable[[int, int], int]
) -> Iterator[tuple[int, int, Duplicate]]:
    """Find the records with equal hashes, and yield file number, piece number and Duplicate for each.

    hashed: hash entries in sorted order.
    before: function that returns the number of records in a file before a piece. Its arguments are the
        numbers of the file and the piece.
    """
    # Entries with the same hash are adjacent, and ordered by file, piece and record, since big-endian numbers
    # sort as bytes. For example, if (h1, file 0, piece 0, record 2) comes before (h1, file 0, piece 3, record
    # 1), then record 1 of piece 3 is a duplicate of record 2 of piece 0.
    last, first = b"", RecordPlace(0, 0)
    for entry in hashed:
        found, file, piece, number = HASH_ENTRY.unpack(entry)
        if found == last:
            yield file, piece, Duplicate(number, first)
        else:
            last, first = found, RecordPlace(file, before(file, piece) + number)


class DuplicateList:
    """Reader of the file of duplicates, which gives each piece the duplicates among its records."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._entries = self._read(stack.enter_context(storage.open_input(path)))
        self._next = next(self._entries, None)

    def _read(self, file: BinaryIO) -> Iterator[tuple[int, int, int, int, int]]:
        while block := file.read(_DUPLICATE_ENTRY.size << 12):
            yield from _DUPLICATE_ENTRY.iter_unpack(block)

    def add_duplicates(self, work: NumberedPiece) -> NumberedPiece:
        """Return the piece with its duplicates filled in. Pieces must come in order, but may be skipped."""
        found = []
        while self._next is not None and self._next[:2] <= (work.file, work.number):
            if self._next[:2] == (work.file, work.number):
                found.append(Duplicate(self._next[2], RecordPlace(*self._next[3:])))
            self._next = next(self._entries, None)
        return work._replace(duplicates=found)


def find_duplicates(
    text: TextDirectory[RecordPlan],
    sources: str,
    pool: ProcessPool,
    identities: Sequence[FileIdentity],
    progress: Callable[[int, int], None],
) -> str:
    """Find all duplicates and write them to a file, unless an earlier run over the same input did.

    Returns the file's path.

    Raises InputError for an unusable record unless the settings skip such records, and ChangedInputError for
    a file that changed during the run.

    sources: md5 of the names and md5s of all input files, which identifies the input.
    identities: size, time and md5 of each input file when the run began, to detect later changes.
    progress: function that is called after each finished piece, with the number of its file and its size in
        bytes.
    """
    commit, pieces, settings = text.commit, plan_pieces(text.plan), text.plan.settings
    name = commit.scratch_name(SCRATCH_NAME)
    if _is_reusable(commit, sources):
        return commit.path(name)
    folder = None if storage.is_remote(commit.directory) else commit.unfinished.removeprefix("file://")
    # Both sorts write temporary files. If the text directory is remote, these files are in the system's
    # temporary directory.
    with (
        SortedEntries(HASH_ENTRY.size, folder) as hashed,
        SortedEntries(_DUPLICATE_ENTRY.size, folder) as found,
    ):
        taken = _hash_records(pool, pieces, settings, hashed, progress)
        # A change between the two passes would make the positions wrong.
        check_all_unchanged(identities)
        for file, piece, one in match_duplicates(hashed, lambda file, piece: taken[file][piece]):
            found.add(_DUPLICATE_ENTRY.pack(file, piece, one.number, *one.of))
        with commit.open(name) as output:
            sink = HashingSink(output.write)
            for entry in found:
                sink.write(entry)
    commit.note(SCRATCH_NAME, {"files": [sink.entry(name)._asdict()], "sources": sources})
    return commit.path(name)


def _is_reusable(commit: Commit, sources: str) -> bool:
    """Return True if an earlier run over the same input left an intact file of duplicates."""
    note = commit.read_note(SCRATCH_NAME)
    if note is None or note.get("sources") != sources:
        return False
    try:
        entries = parse_entry_list(FileEntry, note.get("files"))
    except ManifestError:
        return False
    return all(matches_entry(commit.directory, entry) for entry in entries)


def _hash_records(
    pool: ProcessPool,
    pieces: Iterator[NumberedPiece],
    settings: PartSettings,
    hashed: SortedEntries,
    progress: Callable[[int, int], None],
) -> Sequence[Sequence[int]]:
    """Add the hash entries of all records to ``hashed``.

    Returns for each piece of each file the number of records in the file before the piece.
    """
    before: list[array[int]] = []
    taken = 0
    for work, found in pool.in_order(PieceToHashes(settings), pieces):
        while work.file >= len(before):
            before.append(array("Q"))
            taken = 0
        before[-1].append(taken)
        if found.first_bad is not None and not settings.records.skip_bad_records:
            raise make_bad_record_error(work.path, taken, found.first_bad)
        for entry in split_entries(found.entries):
            hashed.add(entry)
        taken += found.taken
        progress(work.file, work.piece.bytes)
    return before
