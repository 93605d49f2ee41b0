"""NVIDIA's text stage: an article becomes one line, the line becomes sentences."""

from collections.abc import Callable
from dataclasses import dataclass

from bertdata.errors import InputError
from bertdata.io.file_check import md5_of
from bertdata.text.doc_tags import FrameWatch
from bertdata.text.reading import check_articles_text, count_sentences
from bertdata.text.settings import SegmentCounts


@dataclass(frozen=True, kw_only=True, slots=True)
class FormattedText:
    """A file's articles, one line each, and how many lines of text no article held.

    An article without text is an empty line. Lines between ``</doc>`` and the next ``<doc id=`` are
    dropped, as in the original; lines of white space are not counted.
    """

    articles: list[str]
    outside: int


def format_articles(data: bytes, name: str) -> FormattedText:
    r"""The articles without their titles, each line right-stripped and followed by a space.

    Lines end at ``\n`` only; white space is Unicode's, as str.rstrip takes it. InputError for a file
    without articles, and for an article that is not closed.
    """
    watch = FrameWatch(name)
    articles: list[str] = []
    lines: list[str] = []
    is_open = False
    outside = 0
    for number, line in enumerate(data.decode().split("\n"), 1):
        if "<doc id=" in line:
            watch.see_opening(line.encode(), number)
            is_open = True
        elif "</doc>" in line:
            watch.see_closing()
            is_open = False
            articles.append("".join([text.rstrip() + " " for text in lines[1:] if text]))
            lines = []
        elif is_open:
            lines.append(line)
        elif line.strip():
            outside += 1
    watch.finish()
    return FormattedText(articles=articles, outside=outside)


def formatted_text(articles: list[str]) -> bytes:
    """The file that the original writes: each article's line, then an empty line."""
    return "".join([article + "\n\n" for article in articles]).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class NvidiaText:
    """One file's articles, each as its sentences, one a line, and an empty line.

    sentences: how many each article has; empty: articles without text, which are left out; outside: as
    in FormattedText.
    """

    articles: list[bytes]
    sentences: list[int]
    empty: int
    outside: int
    bytes_in: int
    md5: str

    @property
    def counts(self) -> SegmentCounts:
        """The file's share of a run's counts."""
        return SegmentCounts(
            files=1,
            articles=len(self.articles),
            sentences=sum(self.sentences),
            empty=self.empty,
            lines_outside=self.outside,
            bytes_in=self.bytes_in,
        )


def make_articles(data: bytes, name: str, split: Callable[..., bytes]) -> NvidiaText:
    """The articles of an extracted file as sentences; ``split`` is Splitter.segment_lines.

    InputError for bytes that are not UTF-8, a frame cut short, an article of white space to the splitter.
    """
    check_articles_text(data, name)
    formatted = format_articles(data, name)
    lines = [article.rstrip() for article in formatted.articles if article.strip()]
    articles = _split_articles(lines, name, split) if lines else []
    return NvidiaText(
        articles=articles,
        sentences=[count_sentences(article) for article in articles],
        empty=len(formatted.articles) - len(articles),
        outside=formatted.outside,
        bytes_in=len(data),
        md5=md5_of(data),
    )


def _split_articles(lines: list[str], name: str, split: Callable[..., bytes]) -> list[bytes]:
    text = split("\n\n".join(lines).encode(), name, keeps_indent=True)
    articles = text.removesuffix(b"\n").split(b"\n\n")
    if len(articles) != len(lines) or not all(articles):
        raise InputError(
            f"{name}: {len(lines)} articles became {len(articles)} when they were split into sentences, "
            "expected at least one sentence of each"
        )
    return [article + b"\n\n" for article in articles]
