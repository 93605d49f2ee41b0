"""Table of source kinds: for each file format, its file names, its reader and its text fields.

To add a format, add an entry to SOURCE_KINDS. ``recognise.py`` chooses the kind of a file from its bytes. The
kinds "articles" and "text" (one document per file) can also be read by ``bertdata.text.reading``, which makes
the parts of the MLPerf pipeline from them.
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
"""Articles whose extractor escaped ``&``, ``<`` and ``>``. Users cannot select this kind by name: the
manifest of the articles, or a setting, selects it.
"""
TEXT = "text"
BLOCKS = "blocks"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceKind:
    """How files of one format are named and read.

    endings: file name endings, without the ending of a compression such as ``.gz``.
    names: pattern for the whole file name, used instead of endings.
    pieces: function that splits a file into pieces, in order.
    columns: function that lists a file's text fields, or returns None if its records are bare texts.
    """

    endings: tuple[str, ...]
    pieces: Callable[[str, RecordSettings], Iterator[SourcePiece]]
    columns: Callable[[str, RecordSettings], TextFields | None] | None = None
    names: re.Pattern[str] | None = None

    def has(self, name: str) -> bool:
        """Return True if a file with this name, listed from a directory, has this kind."""
        plain = plain_name(name).rpartition("/")[2]
        return self.names.fullmatch(plain) is not None if self.names else plain.endswith(self.endings)

    @property
    def expected(self) -> tuple[str, ...]:
        """File name patterns of this kind, as shown in error messages."""
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
"""The kinds that ``--input-kind`` accepts."""
RECORD_KINDS = tuple(name for name in CHOSEN_KINDS if name not in (ARTICLES, TEXT))
"""The kinds that can only be read as records."""


def are_articles(kind: str) -> bool:
    """Return True for the two kinds of extracted articles."""
    return kind in (ARTICLES, ESCAPED_ARTICLES)


def plain_name(path: str) -> str:
    """Return the path without the ending of a compression such as ``.gz``."""
    for ending in ENDINGS:
        path = path.removesuffix(ending)
    return path
