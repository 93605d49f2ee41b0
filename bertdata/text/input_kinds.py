"""Kinds of files that the text stage reads: how each is found, checked and made into documents.

A kind is an entry of KINDS. Everything else of the text stage, its plan, sentences, evaluation set, shards
and manifest, is the same for all of them; files of several kinds may go into one run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from bertdata.io.foreign_text import universal_newlines
from bertdata.io.input_files import InputFiles
from bertdata.sources.escapes import take_back_escapes
from bertdata.sources.kinds import ARTICLES as ARTICLES
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.sources.kinds import TEXT as TEXT
from bertdata.text import plain_text
from bertdata.text.cleaning import clean_lines
from bertdata.text.doc_tags import StrippedText, strip_frame
from bertdata.text.nvidia_format import FormattedText, format_articles
from bertdata.text.reading import (
    check_articles_beginning,
    check_articles_text,
    find_extracted_files,
    unpack_articles,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class InputKind:
    """A kind of input file. Functions of a file take its bytes and its name, and raise InputError.

    find: the files that patterns and directories name, in the order of their paths. check_beginning: of a
    file that is not read yet, for a dry run. paragraphs: a file's lines for the recipe mlperf, an empty
    line before each document, ready to be split into sentences. format: its documents for the recipe
    nvidia, a line each. draws_rest: MLPerf's evaluation set may draw, instead of a document, the empty
    rest behind the last one, as MLPerf's program does.
    """

    find: Callable[[Iterable[str]], InputFiles]
    check_beginning: Callable[[str], None]
    paragraphs: Callable[[bytes, str], StrippedText]
    format: Callable[[bytes, str], FormattedText]
    draws_rest: bool


def _clean_articles(data: bytes, name: str) -> StrippedText:
    stripped = _strip_articles(data, name)
    return StrippedText(text=universal_newlines(clean_lines(stripped.text)), articles=stripped.articles)


def _clean_escaped_articles(data: bytes, name: str) -> StrippedText:
    """Stages 1 and 2, escapes taken back between them.

    Before stage 1 a page that shows ``<doc`` would become a frame. Stage 2 is made for text without escapes.
    """
    stripped = _strip_articles(data, name)
    text = clean_lines(take_back_escapes(stripped.text))
    return StrippedText(text=universal_newlines(text), articles=stripped.articles)


def _strip_articles(data: bytes, name: str) -> StrippedText:
    data = unpack_articles(data, name)
    check_articles_text(data, name)
    return strip_frame(data, name)


def _format_articles(data: bytes, name: str) -> FormattedText:
    data = unpack_articles(data, name)
    check_articles_text(data, name)
    return format_articles(data, name)


def _format_escaped_articles(data: bytes, name: str) -> FormattedText:
    formatted = _format_articles(data, name)
    articles = [take_back_escapes(article.encode()).decode() for article in formatted.articles]
    return FormattedText(articles=articles, outside=formatted.outside)


def _document_paragraphs(data: bytes, name: str) -> StrippedText:
    return StrippedText(text=plain_text.paragraphs(data, name), articles=1)


def _format_document(data: bytes, name: str) -> FormattedText:
    return FormattedText(articles=[plain_text.one_line(data, name)], outside=0)


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
        paragraphs=_document_paragraphs,
        format=_format_document,
        draws_rest=False,
    ),
}


CHOSEN_KINDS = tuple(kind for kind in KINDS if kind != ESCAPED_ARTICLES)
"""The kinds to ask for. A manifest, or a setting, tells of articles whether they are escaped."""


def check_beginnings(files: Iterable[str], kinds: Iterable[str]) -> None:
    """The check of files that are not read yet, by their first bytes, for a dry run."""
    for path, kind in zip(files, kinds, strict=True):
        KINDS[kind].check_beginning(path)


def told_kinds(kinds: Iterable[str]) -> str | None:
    """The kinds of a run's files in order, in words: ``3 text, 2 articles``. None for articles alone."""
    runs = [(kind, len(list(files))) for kind, files in groupby(kinds)]
    if [kind for kind, _ in runs] == [ARTICLES]:
        return None
    return ", ".join(f"{number} {kind}" for kind, number in runs)
