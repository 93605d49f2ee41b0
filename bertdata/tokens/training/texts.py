"""Reads the text on which a vocabulary is trained: documents in text files or in record files, in slices."""

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
from bertdata.text.record_text import make_bad_record_error, normalise_texts

SLICE_CHARACTERS = 1 << 16
"""Approximate number of characters in a slice of text. Because text is read in slices, memory does not depend
on the length of lines and documents.
"""

LONGEST_RUN = 1 << 18
"""Longest run of characters without a blank, within a line, that is read at once. A longer run is read in
pieces.
"""

_BLOCK_BYTES = 1 << 17

OnRead = Callable[[int], None]
"""Progress callback. Its argument is the number of bytes read since the last call."""


def ignore_read(read: int) -> None:
    """Do nothing. This is the default of callbacks that report bytes read."""


class VocabularyText(Protocol):
    """Interface of the text that a vocabulary is learned from."""

    @property
    def files(self) -> Sequence[str]:
        """Paths of the files."""

    @property
    def bytes(self) -> int:
        """Total size of the files in bytes."""
        ...

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        """Yield the documents as ``create`` encodes them: sentences joined by blanks, in slices.

        A slice ends at the end of a document, or before white space that follows other text. Therefore no
        word and none of GPT-2's pre-tokens is cut. InputError if a file cannot be read.
        """
        ...

    def no_words(self) -> InputError:
        """Make the error for a training text in which no word was found."""
        ...


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Training text from plain text files, with blank lines between documents."""

    paths: Sequence[str]

    @property
    def files(self) -> Sequence[str]:
        return self.paths

    @property
    def bytes(self) -> int:
        return _sum_sizes(self.paths)

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        for path in self.paths:
            yield from _make_slices(_split_lines(_read_blocks(path, on_read)))

    def no_words(self) -> InputError:
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

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        for body in read_bodies(self.plan, on_read):
            yield from _make_slices(_split_lines([body.decode()]))

    def no_words(self) -> InputError:
        return _make_no_words_error(self.plan.files)


def _sum_sizes(paths: Sequence[str]) -> int:
    """Return the total size of the files in bytes."""
    return sum(storage.map_paths(paths, storage.read_size))


def _make_no_words_error(paths: Sequence[str]) -> InputError:
    """Make the error for training files in which no word was found."""
    return InputError(f"{', '.join(paths)}: no words to learn from")


def _read_blocks(path: str, on_read: OnRead) -> Iterator[str]:
    r"""Yield a file's text in blocks, with ``\n`` as the only line end.

    ChangedInputError, raised at the end, if the file was changed in the meantime.
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
    """Decode a block. InputError names file and line of a byte that is not UTF-8."""
    try:
        return decoder.decode(block, final=final)
    except UnicodeDecodeError as error:
        # The decoder's error refers only to this block. Read the whole file to find the line and the offset.
        data = storage.read_bytes(path)
        try:
            data.decode()
        except UnicodeDecodeError as whole:
            raise InputError.not_utf8(path, data, whole.start, suggest_utf8_remedy(data, path)) from None
        raise InputError(f"{path}: was changed while it was read ({error.reason})") from None


def _split_lines(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text. A long line is cut into several.

    Lines of a document are joined by blanks later, so a line is cut at a blank, which is dropped.
    """
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
        # The rest has no line end yet. If it is long, yield its beginning to keep memory bounded.
        while len(rest) > SLICE_CHARACTERS:
            place = _find_line_cut(rest)
            if place:
                yield rest[:place]
                rest = rest[place + 1 :]
            elif len(rest) > LONGEST_RUN:
                # There is no blank at which to cut. This cuts a word, but such a long run without a blank is
                # hardly prose.
                yield rest[:LONGEST_RUN]
                rest = rest[LONGEST_RUN:]
            else:
                break
    yield rest


def _find_line_cut(line: str) -> int:
    """Return the index of the last blank that has text on both sides, without other white space before it.

    The result is 0 if there is no such blank.
    """
    place = line.rfind(" ", 1, len(line.rstrip()))
    while place > 0 and line[place - 1].isspace():
        place = line.rfind(" ", 1, place)
    return max(place, 0)


def _make_slices(lines: Iterable[str]) -> Iterator[str]:
    """Yield documents, which are runs of lines that are not blank, joined by blanks.

    Long documents come in slices.
    """
    sentences: list[str] = []
    characters = 0
    before = ""  # white space that the next slice begins with
    for line in chain(lines, [""]):
        if not line.strip():
            if sentences:
                yield before + " ".join(sentences)
            sentences, characters, before = [], 0, ""
            continue
        if characters > SLICE_CHARACTERS:
            # End the slice before its trailing white space and start the next slice with it: GPT-2's pattern
            # joins a blank to the word after it, and a run of white space must stay together.
            text = before + " ".join(sentences)
            cut = text.rstrip()
            yield cut
            sentences, characters, before = [], 0, f"{text[len(cut) :]} "
        sentences.append(line)
        characters += len(line) + 1


def read_bodies(plan: RecordPlan, on_read: Callable[[int], None] = lambda read: None) -> Iterator[bytes]:
    """Yield the text of each record.

    InputError for the first bad record, unless the settings skip bad records.

    on_read: called with the number of a file's bytes in each piece, after the piece's records.
    ChangedInputError, raised at the end, if a file was changed in the meantime.
    """
    with require_unchanged(plan.identities):
        yield from _read_bodies(plan, on_read)


def _read_bodies(plan: RecordPlan, on_read: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the text of each record, without checking for changed files."""
    settings = plan.settings.records
    for path, kind in zip(plan.files, plan.kinds, strict=True):
        numbers = 0
        for piece in SOURCE_KINDS[kind].pieces(path, settings):
            read = piece.read(settings)
            good, bad = normalise_texts(read.records, plan.settings)
            if bad and not settings.skip_bad_records:
                raise make_bad_record_error(path, numbers, bad[0])
            yield from (body for _, body in good)
            numbers += read.numbers
            on_read(piece.bytes)
