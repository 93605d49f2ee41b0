"""NVIDIA's text stage: extracted articles become one line each."""

from dataclasses import dataclass

from bertdata.text.doc_tags import FrameWatch


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
