"""Kinds of sources: how the files of each are named, entered and read.

A kind is an entry of SOURCE_KINDS. ``recognise.py`` tells the kind of a file by its bytes. Articles and files
that are a document each have a route of their own too, which makes MLPerf's parts.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bertdata.sources.arrow_records import arrow_columns, arrow_pieces
from bertdata.sources.article_records import article_pieces
from bertdata.sources.csv_records import csv_columns, csv_pieces
from bertdata.sources.delimited import USUAL
from bertdata.sources.fields import TextFields
from bertdata.sources.json_values import json_value_columns, json_value_pieces
from bertdata.sources.line_pieces import json_line_columns, json_pieces
from bertdata.sources.parquet_records import parquet_columns, parquet_pieces
from bertdata.sources.piece import SourcePiece
from bertdata.sources.plain_text import block_pieces, file_pieces
from bertdata.sources.settings import RecordSettings
from bertdata.sources.unpacking import ENDINGS

ARTICLES = "articles"
ESCAPED_ARTICLES = "escaped articles"
"""Articles whose extractor escaped their text. No kind to ask for: their manifest, or a setting, tells it."""
TEXT = "text"
BLOCKS = "blocks"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceKind:
    """A kind of files.

    endings: of their names, but for those of compressed files. names: in their place, for whole names.
    pieces: of a file, in order. columns: the fields of texts of a file, None where records are texts alone.
    """

    endings: tuple[str, ...]
    pieces: Callable[[str, RecordSettings], Iterator[SourcePiece]]
    columns: Callable[[str, RecordSettings], TextFields | None] | None = None
    names: re.Pattern[str] | None = None

    def has(self, name: str) -> bool:
        """True where a file of this name, found in a directory, is of the kind."""
        plain = plain_name(name).rpartition("/")[2]
        return self.names.fullmatch(plain) is not None if self.names else plain.endswith(self.endings)

    @property
    def expected(self) -> tuple[str, ...]:
        """The names in words."""
        return ("wiki_<nn>",) if self.names else tuple(f"*{ending}" for ending in self.endings)


SOURCE_KINDS = {
    TEXT: SourceKind(endings=(".txt",), pieces=file_pieces),
    ARTICLES: SourceKind(endings=(), pieces=article_pieces, names=re.compile(r"wiki_\d+")),
    ESCAPED_ARTICLES: SourceKind(
        endings=(), pieces=partial(article_pieces, escaped=True), names=re.compile(r"wiki_\d+")
    ),
    BLOCKS: SourceKind(endings=(".txt",), pieces=block_pieces),
    "jsonl": SourceKind(
        endings=(".jsonl", ".ndjson", ".json"), pieces=json_pieces, columns=json_line_columns
    ),
    "json": SourceKind(endings=(".json",), pieces=json_value_pieces, columns=json_value_columns),
    **{
        name: SourceKind(
            endings=(f".{name}",),
            pieces=partial(csv_pieces, kind=name),
            columns=partial(csv_columns, kind=name),
        )
        for name in USUAL
    },
    "parquet": SourceKind(endings=(".parquet",), pieces=parquet_pieces, columns=parquet_columns),
    "arrow": SourceKind(endings=(".arrow",), pieces=arrow_pieces, columns=arrow_columns),
}
CHOSEN_KINDS = tuple(name for name in SOURCE_KINDS if name != ESCAPED_ARTICLES)
"""The kinds that ``--input-kind`` names."""
RECORD_KINDS = tuple(name for name in CHOSEN_KINDS if name not in (ARTICLES, TEXT))
"""The kinds that are read as records alone."""


def are_articles(kind: str) -> bool:
    """True for the kinds of extracted articles."""
    return kind in (ARTICLES, ESCAPED_ARTICLES)


def plain_name(path: str) -> str:
    """The path without the endings of compressed files."""
    for ending in ENDINGS:
        path = path.removesuffix(ending)
    return path
