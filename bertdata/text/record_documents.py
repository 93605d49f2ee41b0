"""Turn the records of a piece (a group of records) into documents. Each worker does this for one piece at a
time.

Each record is a document. Each line of a document is a sentence. With ``--sentences none`` it is a line of
the original text. An empty line follows each document.

A record may be left out of the training text for four reasons, which are checked in this order: it is
unusable (not valid or without text), the user excluded it, its text is a duplicate, or it is held out for
evaluation.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from bertdata._native import Engine
from bertdata.sources.records import BadRecord, Record
from bertdata.text.languages import find_language
from bertdata.text.numbered_piece import NumberedPiece, RecordPlace
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_text import find_first_fault, hash_text, is_held_out, normalise_texts
from bertdata.text.selection.evaluation_texts import load_ngrams
from bertdata.text.selection.removed import RemovedRecord, describe_bad_record, describe_excluded_record
from bertdata.text.settings import SegmentCounts
from bertdata.text.splitter import LanguageSplitterLoader, Splitter

WITHHELD = "withheld"


class DocumentTexts(NamedTuple):
    """Several documents, one after another.

    text: the text of all documents.
    ends: position in ``text`` where each document ends.
    sizes: bytes of each document before it was split into sentences. Documents are assigned to parts by this
        size.
    """

    text: bytes
    ends: Sequence[int]
    sizes: Sequence[int]


class PieceText(NamedTuple):
    """Documents made from a piece of a source file, and what happened to all its records.

    training: documents to train on.
    withheld: documents held out for evaluation.
    numbers: number of records in the piece. For JSON lines it is the number of lines, also of blank lines.
    removed: records that are not in the training text, in order.
    counts: counts over all records of the piece.
    first_bad: first record of the piece that ends a run unless bad records are skipped, or None.
    unsplit: number of documents of each language without a sentence splitter, by ISO 639-1 code.
    """

    training: DocumentTexts
    withheld: DocumentTexts
    numbers: int
    removed: list[RemovedRecord]
    counts: SegmentCounts
    first_bad: BadRecord | None
    unsplit: dict[str, int]


@dataclass(frozen=True, slots=True)
class PieceToDocuments:
    """Function object that turns the records of a piece into documents. Workers call it.

    engine: whether the C++ kernel or Python searches the records for n-grams of evaluation sets.
    """

    settings: PartSettings
    load_splitter: LanguageSplitterLoader
    engine: Engine | None = None

    def __call__(self, work: NumberedPiece) -> PieceText:
        read = work.piece.read(self.settings.records)
        kept: list[Record] = []
        bodies: list[bytes] = []
        removed: list[RemovedRecord] = []
        duplicates = dict(work.duplicates)
        usable, faults = normalise_texts(read.records, self.settings)
        for record, body in usable:
            if (found := self._find_removal(record, body, duplicates)) is not None:
                removed.append(found)
            else:
                kept.append(record)
                bodies.append(body)
        documents = self._make_documents(bodies, [record.language for record in kept], work.path)
        empty = [n for n, document in enumerate(documents) if len(document) < 2]
        faults += [BadRecord(kept[n].number, "empty", "has no sentence", kept[n].id) for n in empty]
        return self._divide_documents(kept, bodies, documents, faults, removed)._replace(numbers=read.numbers)

    def _find_removal(
        self, record: Record, body: bytes, duplicates: dict[int, RecordPlace]
    ) -> RemovedRecord | None:
        """Return why a record is left out: it contains evaluation text, or is a duplicate.

        Returns None if it is kept.

        body: text of the record.
        duplicates: for the number of each duplicate in the piece, the position of the first record with its
            text.
        """
        selection = self.settings.selection
        if selection.exclude:
            ngrams = load_ngrams(
                selection.exclude, selection.exclude_ngram, self.engine, self.settings.records
            )
            if (shared := ngrams.find(body)) is not None:
                return describe_excluded_record(record, shared, selection.exclude)
        if (of := duplicates.get(record.number)) is not None:
            return RemovedRecord(record.number, "duplicate", record.id, of=of)
        return None

    def _make_documents(self, bodies: list[bytes], languages: list[str | None], path: str) -> list[bytes]:
        """Split each record's text into the lines that a part contains, with an empty line at the end.

        Each document is what the splitter of its language makes of its text alone, whatever records of other
        languages are around it.

        languages: ISO 639-1 code of each text's language. None: the language of the run.
        """
        if self.settings.sentences == "none":
            return [body + b"\n" for body in bodies]
        if self.settings.sentences == "lines":
            return [_strip_lines(body) for body in bodies]
        documents = [b""] * len(bodies)
        for language in dict.fromkeys(languages):
            numbers = [n for n, one in enumerate(languages) if one == language]
            splitter = self.load_splitter() if language is None else self.load_splitter(language)
            made = _split_bodies([bodies[n] for n in numbers], splitter, path)
            for n, document in zip(numbers, made, strict=True):
                documents[n] = document
        return documents

    def _divide_documents(
        self,
        kept: list[Record],
        bodies: list[bytes],
        documents: list[bytes],
        faults: list[BadRecord],
        removed: list[RemovedRecord],
    ) -> PieceText:
        """Divide the documents into training and held-out documents, and count the piece's records.

        kept: records that are not left out.
        bodies: the text of each kept record.
        documents: the document made from each kept record.
        faults: unusable records.
        removed: entries of removed.jsonl for all other records that are left out.
        """
        # A document's hash decides whether it is held out. So documents with equal text are always either all
        # held out or all in training, and the choice depends neither on the number of workers nor on the
        # other documents.
        limit = self.settings.selection.hash_limit
        training: list[int] = []
        withheld: list[int] = []
        for number, document in enumerate(documents):
            if len(document) > 1:
                held_out = limit and is_held_out(hash_text(bodies[number]), limit)
                (withheld if held_out else training).append(number)
        # Count before the held-out documents are added to the list of removed records. A held-out document
        # counts as an article, and the counter ``withheld`` counts it too.
        removed += map(describe_bad_record, faults)
        counts = SegmentCounts(
            articles=len(training) + len(withheld),
            sentences=sum(documents[n].count(b"\n") - 1 for n in (*training, *withheld)),
            withheld=len(withheld),
            **Counter(one.reason for one in removed),
        )
        removed += [RemovedRecord(kept[n].number, WITHHELD, kept[n].id) for n in withheld]
        removed.sort(key=lambda one: one.number)
        first = find_first_fault(faults)
        sets = [
            _join_documents([documents[n] for n in numbers], [len(bodies[n]) for n in numbers])
            for numbers in (training, withheld)
        ]
        unsplit = self._count_unsplit([kept[number] for number in (*training, *withheld)])
        return PieceText(sets[0], sets[1], 0, removed, counts, first, unsplit)

    def _count_unsplit(self, records: list[Record]) -> dict[str, int]:
        """Count the records of each language without a sentence splitter, which the user asked to split.

        Only records with a language of their own count. For a language of the whole run, the run says so.
        """
        if self.settings.sentences != "punkt":
            return {}
        found = Counter(record.language for record in records if record.language is not None)
        return {code: number for code, number in found.items() if find_language(code).splitting == "lines"}


def _split_bodies(bodies: list[bytes], splitter: Splitter, path: str) -> list[bytes]:
    """Split texts of one language into sentences, with a single call of the splitter."""
    # A body already ends with a line end, so joining by "\n" puts an empty line between two documents. The
    # splitter keeps empty lines.
    text = splitter.segment_lines(b"\n".join(bodies) + b"\n", path)
    documents, start = [], 0
    for _ in bodies:
        empty = text.startswith(b"\n", start)  # the splitter found no sentence in this document
        end = start + 1 if empty else text.index(b"\n\n", start) + 2
        documents.append(text[start:end])
        start = end
    return documents


def _join_documents(documents: list[bytes], sizes: list[int]) -> DocumentTexts:
    """Join documents, and keep their ends and their sizes."""
    return DocumentTexts(b"".join(documents), array("Q", accumulate(map(len, documents))), array("Q", sizes))


def _strip_lines(body: bytes) -> bytes:
    """Remove the white space at both ends of each line."""
    return "".join([line.strip() + "\n" for line in body.decode().split("\n")]).encode()
