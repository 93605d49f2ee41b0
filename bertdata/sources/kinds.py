"""Table of source kinds: for each file format, its file names, its reader and its text fields.

To add a format, add an entry to SOURCE_KINDS. ``recognise.py`` finds out the kind of a file from its bytes.
Files of the kinds "articles" and "text" (one document per file) can also be read by
``bertdata.text.reading``, which turns them into the text files of MLPerf's recipe.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bertdata.sources.arrow_records import find_arrow_columns, split_arrow
from bertdata.sources.article_records import split_articles_file
from bertdata.sources.csv_records import read_csv_columns, split_csv
from bertdata.sources.delimited import DEFAULT_DELIMITING
from bertdata.sources.fields import TextFields
from bertdata.sources.json_values import find_json_value_fields, split_json_values
from bertdata.sources.line_pieces import find_json_line_fields, split_json_lines
from bertdata.sources.parquet_records import find_parquet_columns, split_parquet
from bertdata.sources.piece import SourcePiece
from bertdata.sources.plain_text import split_text_blocks, yield_whole_file
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
    """Format of source files: how such files are named and read.

    endings: file name endings of the format, such as ``.csv``. A compressed file has a second ending, such as
        ``.gz``, after it.
    names: pattern for the whole file name, for a format that has no usual ending.
    pieces: function that splits a file into pieces (groups of consecutive records), in order.
    columns: function that lists a file's text fields. It returns None if the records are bare texts.
    """

    endings: tuple[str, ...]
    pieces: Callable[[str, RecordSettings], Iterator[SourcePiece]]
    columns: Callable[[str, RecordSettings], TextFields | None] | None = None
    names: re.Pattern[str] | None = None

    def has_file_name(self, name: str) -> bool:
        """Return True if a file's name shows that the file is of this kind."""
        plain = strip_packing_ending(name).rpartition("/")[2]
        return self.names.fullmatch(plain) is not None if self.names else plain.endswith(self.endings)

    @property
    def expected(self) -> tuple[str, ...]:
        """File name patterns of this kind, for error messages that say which files were expected."""
        return ("wiki_<nn>",) if self.names else tuple(f"*{ending}" for ending in self.endings)


SOURCE_KINDS = {
    TEXT: SourceKind(endings=(".txt",), pieces=yield_whole_file),
    ARTICLES: SourceKind(endings=(), pieces=split_articles_file, names=re.compile(r"wiki_\d+")),
    ESCAPED_ARTICLES: SourceKind(
        endings=(), pieces=partial(split_articles_file, escaped=True), names=re.compile(r"wiki_\d+")
    ),
    BLOCKS: SourceKind(endings=(".txt",), pieces=split_text_blocks),
    "jsonl": SourceKind(
        endings=(".jsonl", ".ndjson", ".json"), pieces=split_json_lines, columns=find_json_line_fields
    ),
    "json": SourceKind(endings=(".json",), pieces=split_json_values, columns=find_json_value_fields),
    **{
        name: SourceKind(
            endings=(f".{name}",),
            pieces=partial(split_csv, kind=name),
            columns=partial(read_csv_columns, kind=name),
        )
        for name in DEFAULT_DELIMITING
    },
    "parquet": SourceKind(endings=(".parquet",), pieces=split_parquet, columns=find_parquet_columns),
    "arrow": SourceKind(endings=(".arrow",), pieces=split_arrow, columns=find_arrow_columns),
}
CHOSEN_KINDS = tuple(name for name in SOURCE_KINDS if name != ESCAPED_ARTICLES)
"""The kinds that ``--input-kind`` accepts."""
RECORD_KINDS = tuple(name for name in CHOSEN_KINDS if name not in (ARTICLES, TEXT))
"""The kinds whose files are only read as records. The recipes mlperf and nvidia cannot read them."""


def is_articles_kind(kind: str) -> bool:
    """Return True if the kind is ARTICLES or ESCAPED_ARTICLES."""
    return kind in (ARTICLES, ESCAPED_ARTICLES)


def strip_packing_ending(path: str) -> str:
    """Return the path without an ending of compression such as ``.gz``."""
    for ending in ENDINGS:
        path = path.removesuffix(ending)
    return path
