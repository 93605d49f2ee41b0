"""Kinds of files that the recipes mlperf and nvidia read: articles, escaped articles, and plain text.

KINDS says how files of each kind are found, checked and read. To add a kind, add an entry to it. Everything
else that ``segment`` does is the same for all kinds. A run may read files of several kinds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from bertdata.io.foreign_text import replace_line_ends
from bertdata.io.input_files import InputFiles
from bertdata.sources.escapes import unescape_text
from bertdata.sources.kinds import ARTICLES as ARTICLES
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.sources.kinds import TEXT as TEXT
from bertdata.text import plain_text
from bertdata.text.cleaning import clean_lines
from bertdata.text.doc_tags import StrippedText, strip_doc_tags
from bertdata.text.nvidia_format import FormattedText, format_articles
from bertdata.text.reading import (
    check_articles_beginning,
    check_articles_text,
    find_extracted_files,
    unpack_articles,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class InputKind:
    """A kind of input files, with the functions that read them.

    ``paragraphs`` and ``format`` take a file's bytes and its name, and raise InputError for a faulty file.

    find: function that finds the files that patterns and directories name, in the order of their paths.
    check_beginning: function that checks a file by its first bytes, for a dry run.
    paragraphs: function that returns a file's lines for the recipe mlperf, with an empty line before each
        document.
    format: function that returns a file's documents for the recipe nvidia, one line each.
    draws_rest: True if the empty text after the file's last document may be drawn for the evaluation set like
        a document. MLPerf's program may draw it, because it splits the text at empty lines.
    """

    find: Callable[[Iterable[str]], InputFiles]
    check_beginning: Callable[[str], None]
    paragraphs: Callable[[bytes, str], StrippedText]
    format: Callable[[bytes, str], FormattedText]
    draws_rest: bool


def _clean_articles(data: bytes, name: str) -> StrippedText:
    """Remove the tags and the mark-up from extracted articles."""
    stripped = _strip_articles(data, name)
    return StrippedText(text=replace_line_ends(clean_lines(stripped.text)), articles=stripped.articles)


def _clean_escaped_articles(data: bytes, name: str) -> StrippedText:
    """Remove the tags from extracted articles, undo the escapes, and remove the mark-up.

    The order matters. If the escapes were undone first, an article that shows ``<doc`` to its readers would
    seem to contain a tag. They are undone before the mark-up is removed, because the rules for mark-up expect
    text without escapes.
    """
    stripped = _strip_articles(data, name)
    text = clean_lines(unescape_text(stripped.text))
    return StrippedText(text=replace_line_ends(text), articles=stripped.articles)


def _strip_articles(data: bytes, name: str) -> StrippedText:
    """Remove the tags from extracted articles."""
    data = unpack_articles(data, name)
    check_articles_text(data, name)
    return strip_doc_tags(data, name)


def _format_articles(data: bytes, name: str) -> FormattedText:
    """Return extracted articles as documents for the recipe nvidia."""
    data = unpack_articles(data, name)
    check_articles_text(data, name)
    return format_articles(data, name)


def _format_escaped_articles(data: bytes, name: str) -> FormattedText:
    """Return escaped articles as documents for the recipe nvidia, with the escapes undone."""
    formatted = _format_articles(data, name)
    articles = [unescape_text(article.encode()).decode() for article in formatted.articles]
    return FormattedText(articles=articles, outside=formatted.outside)


def _split_document(data: bytes, name: str) -> StrippedText:
    """Return the lines of a plain-text file, which is a single document."""
    return StrippedText(text=plain_text.split_paragraphs(data, name), articles=1)


def _format_document(data: bytes, name: str) -> FormattedText:
    """Return a plain-text file as a single document for the recipe nvidia."""
    return FormattedText(articles=[plain_text.join_book_lines(data, name)], outside=0)


KINDS = {
    ARTICLES: InputKind(
        find=find_extracted_files,
        check_beginning=check_articles_beginning,
        paragraphs=_clean_articles,
        format=_format_articles,
        draws_rest=True,
    ),
    ESCAPED_ARTICLES: InputKind(
        find=find_extracted_files,
        check_beginning=check_articles_beginning,
        paragraphs=_clean_escaped_articles,
        format=_format_escaped_articles,
        draws_rest=True,
    ),
    TEXT: InputKind(
        find=plain_text.find_plain_files,
        check_beginning=plain_text.check_plain_beginning,
        paragraphs=_split_document,
        format=_format_document,
        draws_rest=False,
    ),
}


CHOSEN_KINDS = tuple(kind for kind in KINDS if kind != ESCAPED_ARTICLES)
"""Kinds that the user can name. Whether articles are escaped is decided by a manifest or another setting."""


def check_beginnings(files: Iterable[str], kinds: Iterable[str]) -> None:
    """Raise InputError if the first bytes of a file do not fit its kind. Used for a dry run."""
    for path, kind in zip(files, kinds, strict=True):
        KINDS[kind].check_beginning(path)


def describe_kinds(kinds: Iterable[str]) -> str | None:
    """Return the number of files of each kind as text, such as ``3 text, 2 articles``.

    The kinds are in the order of the files.

    Returns None if all files are articles, which is the usual kind.
    """
    runs = [(kind, len(list(files))) for kind, files in groupby(kinds)]
    if [kind for kind, _ in runs] == [ARTICLES]:
        return None
    return ", ".join(f"{number} {kind}" for kind, number in runs)
