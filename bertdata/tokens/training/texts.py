"""Reads the documents that a vocabulary is trained on, from text files or record files (such as JSONL).

Long documents are read in slices, so that memory stays limited.
"""

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_identity import identify_file, require_unchanged
from bertdata.io.file_kind import refuse_other_kinds, suggest_utf8_remedy
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.text.record_plan import RecordPlan
from bertdata.text.record_text import find_first_fault, make_bad_record_error, normalise_texts

SLICE_CHARACTERS = 1 << 16
"""Approximate number of characters in a slice, which is a piece of a document.

Because text is read in slices, the memory in use does not depend on the length of lines and documents.
"""

LONGEST_RUN = 1 << 18
"""Longest text without a blank, in characters, that is kept together within a line. A longer text is cut."""

_BLOCK_BYTES = 1 << 17

OnRead = Callable[[int], None]
"""Function that shows progress. Its argument is the number of bytes read since its last call."""


def ignore_read(read: int) -> None:
    """Do nothing. This is the default for a function that shows how many bytes were read."""


class VocabularyText(Protocol):
    """Interface of the text that a vocabulary is learned from."""

    @property
    def files(self) -> Sequence[str]:
        """Paths of the files that contain the text."""

    @property
    def bytes(self) -> int:
        """Total size of the files in bytes."""
        ...

    def read_slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        """Yield the text in slices, in which the sentences of a document are joined by blanks.

        The command ``create`` encodes documents in the same form. A slice ends at the end of a document, or
        before white space inside it. Therefore no word is cut, and none of the pre-tokens that GPT-2's
        pattern gives.

        on_read: called with the number of bytes read since the last call.

        Raises InputError if a file cannot be read.
        """
        ...

    def make_no_words_error(self) -> InputError:
        """Make the error for a training text in which no word was found."""
        ...


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Training text from plain text files, in which blank lines separate documents."""

    paths: Sequence[str]

    @property
    def files(self) -> Sequence[str]:
        return self.paths

    @property
    def bytes(self) -> int:
        return _sum_sizes(self.paths)

    def read_slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        """Yield the text of all files in slices."""
        for path in self.paths:
            yield from _make_slices(_split_lines(_read_blocks(path, on_read)))

    def make_no_words_error(self) -> InputError:
        return _make_no_words_error(self.paths)


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Training text from record files, such as JSONL. Each record's text is a document."""

    plan: RecordPlan

    @property
    def files(self) -> Sequence[str]:
        return self.plan.files

    @property
    def bytes(self) -> int:
        return _sum_sizes(self.plan.files)

    def read_slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        """Yield the texts of all records in slices."""
        for body in read_record_texts(self.plan, on_read):
            yield from _make_slices(_split_lines([body.decode()]))

    def make_no_words_error(self) -> InputError:
        return _make_no_words_error(self.plan.files)


def _sum_sizes(paths: Sequence[str]) -> int:
    """Return the total size of the files in bytes."""
    return sum(storage.map_paths(paths, storage.read_size))


def _make_no_words_error(paths: Sequence[str]) -> InputError:
    """Make the error for training files in which no word was found."""
    return InputError(f"{', '.join(paths)}: no words to learn from")


def _read_blocks(path: str, on_read: OnRead) -> Iterator[str]:
    r"""Read a file, and yield its text in blocks with ``\n`` as the only line end.

    on_read: called with the number of bytes of each block.
    ChangedInputError at the end of the file if the file was changed in the meantime.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    with require_unchanged([identify_file(path)]), storage.open_input(path) as file:
        block = file.read(_BLOCK_BYTES)
        refuse_other_kinds(block, path)
        while block:
            yield _decode_block(decoder, block, path)
            on_read(len(block))
            block = file.read(_BLOCK_BYTES)
        yield _decode_block(decoder, b"", path, final=True)


def _decode_block(
    decoder: io.IncrementalNewlineDecoder, block: bytes, path: str, *, final: bool = False
) -> str:
    """Decode a block of UTF-8.

    path: path of the file, for error messages.
    final: whether the file ends after this block.

    Raises InputError for bytes that are not UTF-8. It names the file and the line.
    """
    try:
        return decoder.decode(block, final=final)
    except UnicodeDecodeError as error:
        # The decoder's error gives the position in this block only. Read the whole file to find the line.
        data = storage.read_bytes(path)
        try:
            data.decode()
        except UnicodeDecodeError as whole:
            raise InputError.not_utf8(path, data, whole.start, suggest_utf8_remedy(data, path)) from None
        raise InputError(f"{path}: was changed while it was read ({error.reason})") from None


def _split_lines(blocks: Iterable[str]) -> Iterator[str]:
    """Split a text into lines, and yield them. A long line is cut into several lines.

    A line is cut at a blank, which is dropped. When the lines of a document are joined by blanks later, the
    blank is there again.

    blocks: the text in pieces.
    """
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
        # The rest is a line whose end has not been read yet. If it is long, yield its beginning, so that
        # memory stays limited.
        while len(rest) > SLICE_CHARACTERS:
            place = _find_line_cut(rest)
            if place:
                yield rest[:place]
                rest = rest[place + 1 :]
            elif len(rest) > LONGEST_RUN:
                # There is no blank at which the line could be cut, so a word is cut here. Such a long text
                # without a blank is hardly prose.
                yield rest[:LONGEST_RUN]
                rest = rest[LONGEST_RUN:]
            else:
                break
    yield rest


def _find_line_cut(line: str) -> int:
    """Return the index of the last blank at which a line may be cut, or 0 if there is none.

    There must be text on both sides of the blank, and no other white space directly before it.
    """
    place = line.rfind(" ", 1, len(line.rstrip()))
    while place > 0 and line[place - 1].isspace():
        place = line.rfind(" ", 1, place)
    return max(place, 0)


def _make_slices(lines: Iterable[str]) -> Iterator[str]:
    """Join the lines of each document by blanks, and yield the documents. A long document comes in slices.

    lines: lines of all documents. Blank lines separate the documents.
    """
    sentences: list[str] = []
    characters = 0
    before = ""  # white space at the beginning of the next slice
    for line in chain(lines, [""]):
        if not line.strip():
            if sentences:
                yield before + " ".join(sentences)
            sentences, characters, before = [], 0, ""
            continue
        if characters > SLICE_CHARACTERS:
            # End the slice before its trailing white space, and start the next slice with this white space.
            # GPT-2's pattern puts a blank into the same pre-token as the word after it, and consecutive white
            # space into one pre-token.
            text = before + " ".join(sentences)
            cut = text.rstrip()
            yield cut
            sentences, characters, before = [], 0, f"{text[len(cut) :]} "
        sentences.append(line)
        characters += len(line) + 1


def read_record_texts(
    plan: RecordPlan, on_read: Callable[[int], None] = lambda read: None
) -> Iterator[bytes]:
    """Yield the text of each record in the record files.

    on_read: called with the size of each piece of a file in bytes, after the records of the piece.

    Raises InputError for the first bad record, unless the settings say that bad records are skipped.
    ChangedInputError after the last record if a file was changed in the meantime.
    """
    with require_unchanged(plan.identities):
        yield from _read_record_texts(plan, on_read)


def _read_record_texts(plan: RecordPlan, on_read: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the text of each record, without a check whether files were changed."""
    settings = plan.settings.records
    for path, kind in zip(plan.files, plan.kinds, strict=True):
        numbers = 0
        for piece in SOURCE_KINDS[kind].pieces(path, settings):
            read = piece.read(settings)
            good, bad = normalise_texts(read.records, plan.settings)
            if (fault := find_first_fault(bad)) is not None and not settings.skip_bad_records:
                raise make_bad_record_error(path, numbers, fault)
            yield from (body for _, body in good)
            numbers += read.numbers
            on_read(piece.bytes)
