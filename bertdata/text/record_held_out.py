"""Write the documents that are held out of training into evaluation parts.

The parts are named ``eval-00000.txt``, ``eval-00001.txt`` and so on. As with training parts, a new part
begins when the next document would not fit.

Held-out documents are first collected in a scratch file per training part. When all training parts are
written, the evaluation parts are made from the scratch files. For each piece (a group of records), a scratch
file holds four things, where all numbers are uint64: the number of documents and the bytes of their text, the
ends of all documents, the sizes of all documents, and the text.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from bertdata.config.held_out_names import make_record_eval_name
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.text.directory import PlanKind, TextDirectory
from bertdata.text.record_cuts import PartAssignment
from bertdata.text.record_documents import DocumentTexts

_NUMBER_BYTES = 8


def encode_held_out_texts(texts: DocumentTexts) -> bytes:
    """Encode a piece's held-out documents for a scratch file, in the format that the top of this file
    describes.
    """
    head = array("Q", [len(texts.sizes), len(texts.text)])
    return head.tobytes() + array("Q", [*texts.ends, *texts.sizes]).tobytes() + texts.text


def read_held_out_texts(paths: Iterable[str]) -> Iterator[DocumentTexts]:
    """Read the scratch files, and yield the held-out documents of each piece."""
    for path in paths:
        with storage.open_input(path) as file:
            while head := file.read(2 * _NUMBER_BYTES):
                count, size = array("Q", head)
                numbers = array("Q", file.read(2 * _NUMBER_BYTES * count))
                yield DocumentTexts(file.read(size), numbers[:count], numbers[count:])


def write_held_out(
    text: TextDirectory[PlanKind], waiting: Iterable[DocumentTexts], part_bytes: float
) -> list[FileEntry]:
    """Write the held-out documents into evaluation parts, and return the parts' manifest entries.

    A note (a small JSON file) is written for each part, so that a later run knows the part and can remove it.

    waiting: held-out documents of each piece, in the order of the pieces.
    """
    made: list[FileEntry] = []
    sink: HashingSink | None = None
    cuts = PartAssignment(part_bytes)
    with ExitStack() as stack:
        for found in waiting:
            ends: Sequence[int] = [0, *found.ends]
            # The documents come in the order of the records, and are assigned to parts by their sizes only.
            # So it does not matter between which training documents they stood.
            for run in cuts.assign_documents(found.sizes):
                if sink is None or run.part > len(made):
                    if sink is not None:
                        stack.close()
                        made.append(sink.entry(make_record_eval_name(len(made))))
                    sink = stack.enter_context(_open_noted_part(text, make_record_eval_name(run.part)))
                sink.write(found.text[ends[run.start] : ends[run.stop]])
    return made if sink is None else [*made, sink.entry(make_record_eval_name(len(made)))]


def _open_noted_part(text: TextDirectory[PlanKind], name: str) -> AbstractContextManager[HashingSink]:
    """Open an evaluation part for writing, after writing a note that names it."""
    text.commit.note(name, {})
    return text.open(name)
