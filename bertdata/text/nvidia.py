"""NVIDIA's text processing for one file: join each document into one line, then split it into sentences."""

from collections.abc import Callable
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.io.file_check import compute_md5
from bertdata.sources.kinds import ESCAPED_ARTICLES
from bertdata.text.input_kinds import ARTICLES, KINDS
from bertdata.text.reading import count_sentences
from bertdata.text.settings import SegmentCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class NvidiaText:
    """Articles of one file, split into sentences.

    articles: text of each article: one sentence per line, followed by an empty line.
    sentences: number of sentences of each article.
    empty: number of articles without text, which are left out.
    outside: number of lines with text that are outside of any article, and are dropped.
    bytes_in: size of the input file.
    md5: md5 of the input file.
    unescaped: True if escapes such as ``&amp;`` were undone.
    """

    articles: list[bytes]
    sentences: list[int]
    empty: int
    outside: int
    bytes_in: int
    md5: str
    unescaped: bool = False

    @property
    def counts(self) -> SegmentCounts:
        """Counts of this file, which are added to the counts of the run."""
        return SegmentCounts(
            files=1,
            articles=len(self.articles),
            sentences=sum(self.sentences),
            empty=self.empty,
            lines_outside=self.outside,
            unescaped=int(self.unescaped),
            bytes_in=self.bytes_in,
        )


def make_articles(data: bytes, name: str, split: Callable[..., bytes], kind: str = ARTICLES) -> NvidiaText:
    """Read the articles of a file and split them into sentences. A book counts as one article.

    Raises InputError if the bytes are not UTF-8, if an article is cut short, or if an article has only
    characters that the splitter takes for white space.

    split: function that splits lines into sentences, such as ``Splitter.segment_lines``.
    kind: kind of the file, a key of ``input_kinds.KINDS``.
    """
    formatted = KINDS[kind].format(data, name)
    lines = [article.rstrip() for article in formatted.articles if article.strip()]
    articles = _split_articles(lines, name, split) if lines else []
    return NvidiaText(
        articles=articles,
        sentences=[count_sentences(article) for article in articles],
        empty=len(formatted.articles) - len(articles),
        outside=formatted.outside,
        bytes_in=len(data),
        md5=compute_md5(data),
        unescaped=kind == ESCAPED_ARTICLES,
    )


def _split_articles(lines: list[str], name: str, split: Callable[..., bytes]) -> list[bytes]:
    """Split articles, a line each, into sentences."""
    text = split("\n\n".join(lines).encode(), name, keeps_indent=True)
    articles = text.removesuffix(b"\n").split(b"\n\n")
    if len(articles) != len(lines) or not all(articles):
        raise InputError(
            f"{name}: {len(lines)} articles became {len(articles)} when they were split into sentences, "
            "expected at least one sentence of each"
        )
    return [article + b"\n\n" for article in articles]
