"""Read records from plain text: documents between blank lines (``blocks``) or one per file (``text``)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bertdata.io import storage
from bertdata.sources.encoding import describe_undecodable, open_decoded
from bertdata.sources.piece import PIECE_BYTES, Found, ReadPiece
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

_BOM = b"\xef\xbb\xbf"
_BLANK_LINE = re.compile(rb"(?:\r\n|\r(?!\n)|\n)[ \t\f\v]*(?:\r\n|\r(?!\n)|\n)")
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK_LINES = re.compile(r"^[^\S\n]*\n", re.MULTILINE)


def split_text_lines(text: str) -> list[str]:
    r"""Split a text at ``\n``, ``\r\n`` and ``\r`` into lines, without lines of white space.

    >>> split_text_lines("A b.\r\n\n \nC d.")
    ['A b.', 'C d.']
    """
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return [line for line in text.split("\n") if line and not line.isspace()]


def measure_text_lines(text: str) -> int:
    """Return how many bytes ``split_text_lines(text)`` would take in UTF-8, with a line end after each line.

    No list of lines is built, because it would need much memory for a text of very many lines.
    """
    whole = _LINE_END.sub("\n", text) + "\n"
    return len(_BLANK_LINES.sub("", whole).encode(errors="surrogatepass"))


@dataclass(frozen=True, slots=True)
class BlocksPiece:
    """Piece of a text file: consecutive whole documents, separated by blank lines."""

    data: bytes
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        found: Found = []
        for data in _split_documents(self.data):
            found.append(_make_text_record(len(found) + 1, data, settings))
        return ReadPiece(found, len(found))


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Piece that is a whole file with a single document."""

    path: str
    bytes: int

    def read(self, settings: RecordSettings) -> ReadPiece:
        with open_decoded(self.path, settings.encoding) as file:
            data = file.read(settings.raw_bytes + 1).removeprefix(_BOM)
        return ReadPiece([_make_text_record(1, data, settings)], 1)


def yield_whole_file(path: str, settings: RecordSettings) -> Iterator[FilePiece]:
    """Yield the whole file as a single piece that contains a single document."""
    yield FilePiece(path, storage.read_size(path))


def split_text_blocks(path: str, settings: RecordSettings) -> Iterator[BlocksPiece]:
    """Divide a file of documents between blank lines into pieces, that is, groups of consecutive whole
    documents.

    A document is cut after ``settings.raw_bytes`` bytes, so that memory stays bounded. Such a document is
    longer than a record may be, so it becomes a bad record (a record that cannot be used) anyway.
    """
    with open_decoded(path, settings.encoding) as file:
        rest = file.read(PIECE_BYTES).removeprefix(_BOM)
        looked_at = 0
        while more := file.read(PIECE_BYTES):
            rest += more
            if cut := _find_last_blank_line(rest, looked_at):
                yield BlocksPiece(rest[:cut], cut)
                rest, looked_at = rest[cut:], 0
                continue
            if len(rest) > settings.raw_bytes + PIECE_BYTES:
                # The last bytes are kept because they may be the first half of a blank line.
                rest = rest[: settings.raw_bytes] + rest[-2:]
            looked_at = len(rest.rstrip())
        if rest:
            yield BlocksPiece(rest, len(rest))


def _find_last_blank_line(data: bytes, start: int) -> int:
    r"""Return the position after the last blank line that begins at ``start`` or later, 0 if there is none.

    A blank line at the very end of the data does not count, because its ``\r`` may be the first half of
    ``\r\n``.
    """
    at = data.rfind(b"\n\n", start)
    if at >= 0:
        return at + 2
    ends = [found.end() for found in _BLANK_LINE.finditer(data, start) if found.end() < len(data)]
    return ends[-1] if ends else 0


def _split_documents(data: bytes) -> Iterator[bytes]:
    """Yield the documents in the data, separated by blank lines, without building a list of lines."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    # begin: start of the current document, -1 between documents. last: end of the last line of the current
    # document that is not blank.
    begin = last = -1
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[at:end]
        if line and not _is_blank(line):
            begin, last = (at if begin < 0 else begin), end
        elif begin >= 0:
            yield data[begin:last]
            begin = -1
        at = end + 1
    if begin >= 0:
        yield data[begin:last]


def _is_blank(line: bytes) -> bool:
    # bytes.isspace() knows ASCII only. A line of other Unicode white space starts with a byte above 0x7F.
    return line.isspace() or (line[0] >= 0x80 and line.decode(errors="replace").isspace())


def _make_text_record(number: int, data: bytes, settings: RecordSettings) -> Record | BadRecord:
    if len(data) >= settings.raw_bytes:  # split_text_blocks cut its end
        return BadRecord(number, "too_long", f"a document of {settings.raw_bytes} bytes or more")
    try:
        return Record(number, data.decode())
    except UnicodeDecodeError as error:
        return BadRecord(number, "malformed", describe_undecodable(data, error.start, settings.encoding))
