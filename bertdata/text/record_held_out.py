"""Documents of records held out of training: they wait in a file for each part, then become eval parts.

::

    eval-00000.txt eval-00001.txt ...   cut as the parts to train on are, by bytes of text

A waiting file holds for each piece the numbers of its documents and of their bytes (uint64 each), the ends
and the sizes of all documents (uint64), and their text.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from bertdata.config.text_file_names import record_eval_name
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.text.directory import PlanKind, TextDirectory
from bertdata.text.record_cuts import PartCuts
from bertdata.text.record_documents import DocumentTexts

_NUMBER_BYTES = 8


def waiting_texts(texts: DocumentTexts) -> bytes:
    """The bytes of a piece's documents in a waiting file."""
    head = array("Q", [len(texts.sizes), len(texts.text)])
    return head.tobytes() + array("Q", [*texts.ends, *texts.sizes]).tobytes() + texts.text


def read_waiting(paths: Iterable[str]) -> Iterator[DocumentTexts]:
    """The documents of each piece in the waiting files."""
    for path in paths:
        with storage.open_input(path) as file:
            while head := file.read(2 * _NUMBER_BYTES):
                count, size = array("Q", head)
                numbers = array("Q", file.read(2 * _NUMBER_BYTES * count))
                yield DocumentTexts(file.read(size), numbers[:count], numbers[count:])


def write_held_out(
    text: TextDirectory[PlanKind], waiting: Iterable[DocumentTexts], part_bytes: float
) -> list[FileEntry]:
    """Write the parts of the documents held out, and note them. Returns their entries."""
    made: list[FileEntry] = []
    sink: HashingSink | None = None
    cuts = PartCuts(part_bytes)
    with ExitStack() as stack:
        for found in waiting:
            ends: Sequence[int] = [0, *found.ends]
            for run in cuts.runs(found.sizes):
                if sink is None or run.part > len(made):
                    if sink is not None:
                        stack.close()
                        made.append(sink.entry(record_eval_name(len(made))))
                    sink = stack.enter_context(_noted(text, record_eval_name(run.part)))
                sink.write(found.text[ends[run.start] : ends[run.stop]])
    return made if sink is None else [*made, sink.entry(record_eval_name(len(made)))]


def _noted(text: TextDirectory[PlanKind], name: str) -> AbstractContextManager[HashingSink]:
    """The file, opened for writing. It is noted, so that a later run without it removes it."""
    text.commit.note(name, {})
    return text.open(name)
