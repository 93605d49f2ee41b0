"""The text that a vocabulary is trained on: documents of files, as parts or as records, in slices."""

import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.file_identity import identify, unchanged
from bertdata.io.file_kind import refuse_other_kinds, utf8_remedy
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.text.record_plan import RecordPlan
from bertdata.text.record_text import bad_record_error, record_bodies

SLICE_CHARACTERS = 1 << 16
"""Length of a slice, about. Memory does not depend on how long lines and documents are."""

LONGEST_RUN = 1 << 18
"""Characters. A longer run without a blank within one line is read in pieces."""

_BLOCK_BYTES = 1 << 17

OnRead = Callable[[int], None]
"""Told how many more bytes were read."""


def ignore_read(read: int) -> None:
    """Tell nobody."""


class VocabularyText(Protocol):
    """The text of some files."""

    @property
    def files(self) -> Sequence[str]:
        """The paths of the files."""

    @property
    def bytes(self) -> int:
        """The size of the files."""
        ...

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        """Yield the documents as ``create`` encodes them: sentences with blanks between, in slices.

        A slice ends where its document ends, or before white space that follows something else; so no word
        is cut, nor one of GPT-2's pre-tokens. InputError for what cannot be read.
        """
        ...

    def no_words(self) -> InputError:
        """Return the error for a text in which there is nothing to learn."""
        ...


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Files of text as parts are: blank lines between documents."""

    paths: Sequence[str]

    @property
    def files(self) -> Sequence[str]:
        return self.paths

    @property
    def bytes(self) -> int:
        return _total_bytes(self.paths)

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        for path in self.paths:
            yield from _slices(_lines(_read_blocks(path, on_read)))

    def no_words(self) -> InputError:
        return _no_words(self.paths)


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Files of records: their texts, each of which is a document."""

    plan: RecordPlan

    @property
    def files(self) -> Sequence[str]:
        return self.plan.files

    @property
    def bytes(self) -> int:
        return _total_bytes(self.plan.files)

    def slices(self, on_read: OnRead = ignore_read) -> Iterator[str]:
        for body in read_bodies(self.plan, on_read):
            yield from _slices(_lines([body.decode()]))

    def no_words(self) -> InputError:
        return _no_words(self.plan.files)


def _total_bytes(paths: Sequence[str]) -> int:
    return sum(storage.each(paths, storage.size))


def _no_words(paths: Sequence[str]) -> InputError:
    return InputError(f"{', '.join(paths)}: no words to learn from")


def _read_blocks(path: str, on_read: OnRead) -> Iterator[str]:
    r"""Yield the text of a file in blocks, every line end a ``\n``.

    ChangedInputError, at its end, for a file that was changed meanwhile.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    with unchanged([identify(path)]), storage.open_input(path) as file:
        block = file.read(_BLOCK_BYTES)
        refuse_other_kinds(block, path)
        while block:
            yield _decode(decoder, block, path)
            on_read(len(block))
            block = file.read(_BLOCK_BYTES)
        yield _decode(decoder, b"", path, final=True)


def _decode(decoder: io.IncrementalNewlineDecoder, block: bytes, path: str, *, final: bool = False) -> str:
    """Return the block's text. InputError names file and line of a byte that is not UTF-8."""
    try:
        return decoder.decode(block, final=final)
    except UnicodeDecodeError as error:
        # The error knows the block alone. The whole file tells line and offset.
        data = storage.read_bytes(path)
        try:
            data.decode()
        except UnicodeDecodeError as whole:
            raise InputError.not_utf8(path, data, whole.start, utf8_remedy(data, path)) from None
        raise InputError(f"{path}: was changed while it was read ({error.reason})") from None


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text. A long line is cut into several, as sentences are joined again by blanks."""
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
        while len(rest) > SLICE_CHARACTERS:
            place = _cut(rest)
            if place:
                yield rest[:place]
                rest = rest[place + 1 :]
            elif len(rest) > LONGEST_RUN:
                yield rest[:LONGEST_RUN]
                rest = rest[LONGEST_RUN:]
            else:
                break
    yield rest


def _cut(line: str) -> int:
    """Return the place of the last blank after which the line goes on, white space not before it. Else 0."""
    place = line.rfind(" ", 1, len(line.rstrip()))
    while place > 0 and line[place - 1].isspace():
        place = line.rfind(" ", 1, place)
    return max(place, 0)


def _slices(lines: Iterable[str]) -> Iterator[str]:
    """Yield documents: runs of lines that are not blank, joined by blanks. Long ones come in slices."""
    sentences: list[str] = []
    characters = 0
    before = ""  # white space between the slice before and this one
    for line in chain(lines, [""]):
        if not line.strip():
            if sentences:
                yield before + " ".join(sentences)
            sentences, characters, before = [], 0, ""
            continue
        if characters > SLICE_CHARACTERS:
            text = before + " ".join(sentences)
            cut = text.rstrip()
            yield cut
            sentences, characters, before = [], 0, f"{text[len(cut) :]} "
        sentences.append(line)
        characters += len(line) + 1


def read_bodies(plan: RecordPlan, on_read: Callable[[int], None] = lambda read: None) -> Iterator[bytes]:
    """The text of each record. InputError for the first bad one, unless the settings leave it out.

    on_read: told how many bytes of a file each piece took, once its records are through. ChangedInputError,
    when all was read, for a file that was changed meanwhile.
    """
    with unchanged(plan.identities):
        yield from _bodies(plan, on_read)


def _bodies(plan: RecordPlan, on_read: Callable[[int], None]) -> Iterator[bytes]:
    settings = plan.settings.records
    for path, kind in zip(plan.files, plan.kinds, strict=True):
        numbers = 0
        for piece in SOURCE_KINDS[kind].pieces(path, settings):
            read = piece.read(settings)
            good, bad = record_bodies(read.records, plan.settings)
            if bad and not settings.skip_bad_records:
                raise bad_record_error(path, numbers, bad[0])
            yield from (body for _, body in good)
            numbers += read.numbers
            on_read(piece.bytes)
