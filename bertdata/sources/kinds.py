"""Kinds of sources: how the files of each are named, recognised, entered and read.

A kind is an entry of SOURCE_KINDS. Bytes tell the kind of JSON lines, Parquet and Arrow, compressed or not.
CSV and TSV have no mark of their own: their files are known by name, and plain text by ``--input-kind``.
Articles and files that are a document each have a route of their own too, which makes MLPerf's parts.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bertdata.errors import InputError
from bertdata.io.file_kind import find_kind
from bertdata.sources.arrow_records import FILE_MAGIC, STREAM_MARK, arrow_columns, arrow_pieces
from bertdata.sources.article_records import FRAME, article_pieces
from bertdata.sources.csv_records import DELIMITERS, csv_columns, csv_pieces
from bertdata.sources.json_lines import parse_line
from bertdata.sources.line_pieces import json_pieces
from bertdata.sources.parquet_records import parquet_columns, parquet_pieces
from bertdata.sources.piece import SourcePiece
from bertdata.sources.plain_text import block_pieces, file_pieces
from bertdata.sources.settings import RecordSettings
from bertdata.sources.unpacking import ENDINGS, open_unpacked

ARTICLES = "articles"
TEXT = "text"
BLOCKS = "blocks"
HEAD_BYTES = 1 << 16

_LINES_LOOKED_AT = 100
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceKind:
    """A kind of files.

    endings: of their names, but for those of compressed files. names: in their place, for whole names.
    pieces: of a file, in order. columns: names of the fields of texts of a file, None where records are
    texts alone.
    """

    endings: tuple[str, ...]
    pieces: Callable[[str, RecordSettings], Iterator[SourcePiece]]
    columns: Callable[[str], list[str]] | None = None
    names: re.Pattern[str] | None = None

    def has(self, name: str) -> bool:
        """True where a file of this name, found in a directory, is of the kind."""
        plain = plain_name(name).rpartition("/")[2]
        return self.names.fullmatch(plain) is not None if self.names else plain.endswith(self.endings)

    @property
    def expected(self) -> tuple[str, ...]:
        """The names in words."""
        return ("wiki_<nn>",) if self.names else tuple(f"*{ending}" for ending in self.endings)


def _json_columns(path: str) -> list[str]:
    """The fields of texts in the first lines of a file of JSON lines."""
    found: dict[str, None] = {}
    for value in _first_objects(read_head(path)):
        found |= dict.fromkeys(name for name, one in value.items() if isinstance(one, str))
    return list(found)


def _first_objects(head: bytes) -> Iterator[dict[str, Any]]:
    lines = head.removeprefix(_BOM).split(b"\n")
    for line in lines[:_LINES_LOOKED_AT]:
        try:
            value = parse_line(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


SOURCE_KINDS = {
    TEXT: SourceKind(endings=(".txt",), pieces=file_pieces),
    ARTICLES: SourceKind(endings=(), pieces=article_pieces, names=re.compile(r"wiki_\d+")),
    BLOCKS: SourceKind(endings=(".txt",), pieces=block_pieces),
    "jsonl": SourceKind(endings=(".jsonl", ".ndjson", ".json"), pieces=json_pieces, columns=_json_columns),
    **{
        name: SourceKind(
            endings=(f".{name}",),
            pieces=partial(csv_pieces, delimiter=mark),
            columns=partial(csv_columns, delimiter=mark),
        )
        for name, mark in DELIMITERS.items()
    },
    "parquet": SourceKind(endings=(".parquet",), pieces=parquet_pieces, columns=parquet_columns),
    "arrow": SourceKind(endings=(".arrow",), pieces=arrow_pieces, columns=arrow_columns),
}
RECORD_KINDS = tuple(name for name in SOURCE_KINDS if name not in (ARTICLES, TEXT))
"""The kinds that are read as records alone."""


def read_head(path: str) -> bytes:
    """The beginning of the file, or of what it holds where it is compressed."""
    with open_unpacked(path) as file:
        return file.read(HEAD_BYTES)


def recognise(path: str) -> str | None:
    """The kind that the file's bytes tell, of CSV and TSV its name. None where they do not tell."""
    head = read_head(path)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(FILE_MAGIC) or (head.startswith(STREAM_MARK) and head[4:8] != b"\0\0\0\0"):
        return "arrow"
    if head.removeprefix(_BOM).startswith(FRAME):
        return ARTICLES
    if _is_json_lines(head.removeprefix(_BOM)):
        return "jsonl"
    name = plain_name(path)
    other = find_kind(head, path, whole=len(head) < HEAD_BYTES)
    if name.endswith((".csv", ".tsv")) and other is None:
        return name[-3:]
    return None


def _is_json_lines(head: bytes) -> bool:
    """True where the first line that is not blank is an object of JSON, or begins as a long one does."""
    lines = head.split(b"\n")
    first = next((line.strip() for line in lines if line.strip()), b"")
    if not first.startswith(b"{"):
        return False
    try:
        return isinstance(parse_line(first), dict) and first != b"{}"
    except ValueError:
        pass
    if len(head) == HEAD_BYTES and len(lines) == 1:
        return find_kind(head, "", whole=False) is not None
    others = [line for line in lines[1:-1] if line.strip().startswith(b'{"')]
    return len(others) > 1 and any(map(_is_object, others))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse_line(line), dict)
    except ValueError:
        return False


def plain_name(path: str) -> str:
    """The path without the endings of compressed files."""
    for ending in ENDINGS:
        path = path.removesuffix(ending)
    return path


def check_kind(path: str, kind: str) -> None:
    """InputError for a file whose bytes plainly tell another kind."""
    found = recognise(path)
    binary = ("parquet", "arrow")
    if found != kind and (found in binary or kind in binary):
        what = "no file of that kind" if found is None else found
        raise InputError(f"{path}: looks like {what}, expected {kind}")
